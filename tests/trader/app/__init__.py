"""Tests of trader.app."""
