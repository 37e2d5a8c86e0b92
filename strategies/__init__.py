"""Trading strategies and the indicators and kernels under them: bars in, signals out."""
