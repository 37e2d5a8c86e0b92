"""Tests of the embedded exchange."""
