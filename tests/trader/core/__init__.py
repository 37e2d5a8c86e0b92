"""Tests of trader.core."""
