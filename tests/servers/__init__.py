"""Servers that tests talk to, on loopback."""
