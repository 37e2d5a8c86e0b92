"""The engines of a sweep, by bits and bar by bar, and the definition they are held against."""
