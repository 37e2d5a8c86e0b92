"""Sweeps: a strategy over a grid of numbers, its outcomes, and how much of the best is luck."""
