"""Tests of the trader package."""
