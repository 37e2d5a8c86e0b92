"""Indicators of a series of bars: thin, named doors to the kernels, and the `ta` library by name."""
