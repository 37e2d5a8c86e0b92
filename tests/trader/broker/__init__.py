"""Tests of the broker adapter, its clients and the embedded exchange."""
