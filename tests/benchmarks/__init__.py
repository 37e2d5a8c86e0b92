"""Tests of speed, as ratios measured in one run."""
