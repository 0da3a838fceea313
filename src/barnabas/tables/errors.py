"""Errors of tables; their messages are for users."""


class TableError(Exception):
    """A table cannot be kept: its settings, its location or its schema are not right."""


class ConcurrentCommit(Exception):
    """Another writer committed first. Nothing was written; the table must be read again."""
