"""The account that trades: one adapter, one maker of clients, and the embedded paper exchange."""
