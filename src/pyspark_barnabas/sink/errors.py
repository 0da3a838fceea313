"""Errors of rows and of repeated batches, with messages that say what to try next."""


class SinkError(Exception):
    """Invalid columns or rows, identified so that they can be found."""


class RowsMoved(SinkError):
    """A partly committed batch was repeated with its rows in other tasks, so the missing rows cannot be determined."""


class Fenced(SinkError):
    """Another writer has taken over the transactional ids, or the broker has aborted the transaction."""
