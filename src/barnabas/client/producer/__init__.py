"""Produces records, in transactions too."""
