"""Tests of trader.text."""
