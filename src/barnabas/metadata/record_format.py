"""The format of the records in the metadata store: a version that would misread them does not start.

Raise `FORMAT` with each new record type, and with each field that must not be lost when an older version writes the
record again. A version that raises it writes the new format when all brokers know it; until then it writes the old one.
"""

from collections.abc import Iterable

from barnabas.metadata.record_type import RecordType
from barnabas.metadata.store import Item, StoreChange, StoreError

#: The latest format that this version reads and writes.
FORMAT = 1

#: The key of the only record. A store without it has format 1.
KEY = "self"


class UnknownFormat(StoreError):
    """A newer version has written the records."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"The metadata store has {found}, and this version of Barnabas knows formats up to {FORMAT}: a newer "
            "version has written them. Start that version, or a newer one."
        )


def _known(plain: int) -> int:
    if plain > FORMAT:
        raise UnknownFormat(f"records of format {plain}")
    return plain


RECORD_FORMAT: RecordType[int] = RecordType("format", int, _known)


def put_format() -> StoreChange:
    """Return the change that notes the format of a new store."""
    return RECORD_FORMAT.put(KEY, FORMAT)


def check_format(items: Iterable[Item]) -> None:
    """Check the format before the records are read.

    :raises UnknownFormat: If the store has a later one.
    """
    for item in items:
        if item.key == RECORD_FORMAT.key(KEY):
            RECORD_FORMAT.decode(item.value)
