"""What every noun of cluster state shares: how it stands in the store, and its table in the image."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from barnabas.metadata.store import NEVER, StoreChange

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class RecordType(Generic[ValueT]):
    """One kind of thing in the store: keys `name/...`, values JSON made of plain data."""

    name: str
    to_plain: Callable[[ValueT], Any]
    from_plain: Callable[[Any], ValueT]

    def key(self, key: str) -> str:
        """The store's key for one thing of this kind."""
        return f"{self.name}/{key}"

    def put(self, key: str, value: ValueT) -> StoreChange:
        """The change that writes one thing."""
        text = json.dumps(self.to_plain(value), separators=(",", ":"), sort_keys=True)
        return StoreChange(self.key(key), text.encode())

    def remove(self, key: str) -> StoreChange:
        """The change that removes one thing."""
        return StoreChange(self.key(key), None)

    def decode(self, value: bytes) -> ValueT:
        """One thing from its bytes in the store."""
        return self.from_plain(json.loads(value))


@dataclass(frozen=True, slots=True)
class Table(Mapping[str, ValueT]):
    """All things of one kind at one revision."""

    rows: Mapping[str, ValueT] = field(default_factory=dict)
    revisions: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, key: str) -> ValueT:
        return self.rows[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def revision(self, key: str) -> int:
        """The revision that last wrote `key`; NEVER where there is none."""
        return self.revisions.get(key, NEVER)

    def replay(self, revision: int, changes: Mapping[str, ValueT | None]) -> "Table[ValueT]":
        """The table after a commit's changes to it."""
        rows, revisions = dict(self.rows), dict(self.revisions)
        for key, value in changes.items():
            if value is None:
                rows.pop(key, None)
                revisions.pop(key, None)
            else:
                rows[key] = value
                revisions[key] = revision
        return Table(rows, revisions)
