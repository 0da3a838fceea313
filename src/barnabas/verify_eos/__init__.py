"""Checks that a pipeline has written each record exactly once."""
