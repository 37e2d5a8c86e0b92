"""Reports a person can open: one self-contained HTML file for each backtest."""
