"""Committed offsets of groups, and offsets of pending transactions."""
