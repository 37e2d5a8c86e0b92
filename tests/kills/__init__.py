"""Real processes of `trader`, killed at named points, and what is left of their account."""
