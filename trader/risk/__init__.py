"""The risk gate: plain arithmetic that no argument can talk round."""
