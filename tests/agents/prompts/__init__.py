"""Tests of agents.prompts."""
