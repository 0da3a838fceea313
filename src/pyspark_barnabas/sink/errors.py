"""What goes wrong with rows, or between two runs of a batch, said so that a person knows what to try next."""


class SinkError(Exception):
    """Rows that cannot be written as they are; named so that they can be found."""


class RowsMoved(SinkError):
    """A batch that is done in part came again with its rows in other tasks, so the rest cannot be told."""


class Fenced(SinkError):
    """Somebody else has taken over the transactional ids, or the broker has given the transaction up."""
