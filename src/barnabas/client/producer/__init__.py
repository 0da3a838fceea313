"""Producing records, also in transactions."""
