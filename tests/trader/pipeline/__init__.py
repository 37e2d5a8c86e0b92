"""Tests of trader.pipeline."""
