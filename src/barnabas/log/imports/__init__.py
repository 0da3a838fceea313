"""Segment files that were built outside the broker and become part of a log."""
