"""Orders: written down before they are sent, looked up when in doubt, never without protection."""
