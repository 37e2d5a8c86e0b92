"""Text as models see it: how many tokens it takes."""
