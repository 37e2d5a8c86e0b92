"""Tests of trader.cli."""
