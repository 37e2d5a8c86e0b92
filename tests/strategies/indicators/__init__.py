"""Tests of strategies.indicators."""
