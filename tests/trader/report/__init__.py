"""Tests of trader.report."""
