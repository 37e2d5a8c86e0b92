"""Tests of trader.risk."""
