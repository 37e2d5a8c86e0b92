"""Tests of trader.ledger."""
