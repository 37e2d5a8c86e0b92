"""Tests of trader.orders."""
