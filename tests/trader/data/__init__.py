"""Tests of trader.data."""
