"""The keys that a commit changed, by record type, so that a listener looks only at the types that concern it."""

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.metadata.record_type import RecordType, split_key
from barnabas.metadata.store import StoreChange


class ChangedKeys:
    """Row keys; those of one type are in the order of the commit."""

    def __init__(self, changes: Iterable[StoreChange]) -> None:
        self._keys: dict[str, list[str]] = {}
        for change in changes:
            name, row_key = split_key(change.key)
            self._keys.setdefault(name, []).append(row_key)

    def of(self, record_type: RecordType[Any]) -> Sequence[str]:
        """Return the changed keys of a type: written or removed."""
        return self._keys.get(record_type.name, ())

    def contains_any_of(self, record_types: Iterable[RecordType[Any]]) -> bool:
        """Return whether a record of one of these types has changed."""
        return any(record_type.name in self._keys for record_type in record_types)
