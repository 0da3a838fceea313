"""Configurations shown and changed."""
