"""The ledger: append-only, hash-chained records and the accounting over them."""
