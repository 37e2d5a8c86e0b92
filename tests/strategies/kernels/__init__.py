"""Tests of strategies.kernels."""
