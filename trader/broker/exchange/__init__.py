"""The embedded paper exchange: Alpaca's REST over bars, with a clock that only `advance` moves."""
