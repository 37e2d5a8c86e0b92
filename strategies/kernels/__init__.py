"""The arithmetic under the indicators: a NumPy reference, its compiled twins, and the door to both."""
