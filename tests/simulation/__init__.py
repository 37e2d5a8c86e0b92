"""A seeded simulation of the order path: crashes, a bad line to the broker, and an oracle."""
