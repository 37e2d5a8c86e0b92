"""Tests of agents.debate."""
