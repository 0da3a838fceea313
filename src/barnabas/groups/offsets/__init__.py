"""Committed offsets: what groups have read, and what transactions will have read when they are committed."""
