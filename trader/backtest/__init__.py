"""Backtests: history replayed through the same cycle, and what it amounts to."""
