"""Tests of trader.backtest."""
