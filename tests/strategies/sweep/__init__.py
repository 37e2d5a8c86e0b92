"""Tests of the sweeps."""
