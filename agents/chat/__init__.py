"""Who speaks in a debate: rules by default."""
