"""The isolation level of a request that reads records or offsets."""

from enum import IntEnum


class Isolation(IntEnum):
    """Whether records of open and aborted transactions are visible."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


ISOLATION_LEVELS = tuple(Isolation)
