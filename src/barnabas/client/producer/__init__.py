"""Producing records, in transactions too."""
