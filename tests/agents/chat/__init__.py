"""Tests of agents.chat."""
