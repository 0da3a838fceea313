"""Writes DataFrames to topics: in transactions, so that each row arrives exactly once, or without, at least once."""
