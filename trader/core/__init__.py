"""Nouns, ports, clock, configuration, costs and metrics that every other room may use."""
