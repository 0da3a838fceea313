"""Metadata stores: SQLite on one machine. No other package accesses a database."""
