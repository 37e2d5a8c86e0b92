"""The arithmetic under the indicators: a reference, its compiled twins, and the door to both."""
