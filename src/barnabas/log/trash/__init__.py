"""Logs of deleted topics that can be brought back."""
