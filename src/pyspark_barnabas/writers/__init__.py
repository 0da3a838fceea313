"""Sinks of batches: each writes a batch once, however often it is repeated."""
