"""Market data: bars that have been checked before anybody may decide on them."""
