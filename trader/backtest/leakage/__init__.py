"""Looking for leaks: decisions taken again in every way that must not matter."""
