"""Indicators of a series of bars: named doors to the kernels, and the `ta` library."""
