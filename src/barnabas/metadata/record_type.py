"""What the record types of the metadata have in common. Each is declared in one module, with all that belongs to it."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar, overload

from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.decision import Decision
from barnabas.metadata.store import NEVER, StoreChange

if TYPE_CHECKING:
    from barnabas.metadata.audit.rollback import RollbackRules
    from barnabas.metadata.image import MetadataImage

ValueT = TypeVar("ValueT")
DefaultT = TypeVar("DefaultT")

#: (image before the change, row key, value before, value after) -> differences for the audit
AuditView: TypeAlias = Callable[["MetadataImage", str, ValueT | None, ValueT | None], Iterator[Difference]]


def split_key(store_key: str) -> tuple[str, str]:
    """Return the name of the record type, and the row key, which together are a key of the store."""
    name, _, row_key = store_key.partition("/")
    return name, row_key


class RowKeys(NamedTuple):
    """Some row keys of a record type: the ones listed, and all with one of the prefixes."""

    listed: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordRollback(Generic[ValueT]):
    """How RollbackResource restores records of a type."""

    #: resource, named as in the audit -> the row keys that its records have; so no value has to be decoded to find them
    row_keys: Callable[[str], RowKeys]
    #: (image, row key -> value to restore or None, rules) -> the decision that restores a resource's records of this
    #: type
    restore: Callable[["MetadataImage", Mapping[str, ValueT | None], "RollbackRules"], Decision[Any]]


@dataclass(frozen=True, slots=True)
class RecordType(Generic[ValueT]):
    """One type of records in the metadata store: keys `name/ROW_KEY`, values JSON."""

    name: str
    to_plain: Callable[[ValueT], Any]
    from_plain: Callable[[Any], ValueT]
    #: None: changes are internal to the brokers, and not audited.
    audit: AuditView[ValueT] | None = None
    #: Replaced values are kept for a while.
    keeps_history: bool = False
    #: None: RollbackResource does not restore records of this type.
    rollback: RecordRollback[ValueT] | None = None

    def key(self, row_key: str) -> str:
        """Return the key in the store."""
        return f"{self.name}/{row_key}"

    def put(self, row_key: str, value: ValueT) -> StoreChange:
        """Return the change that writes a record."""
        text = json.dumps(self.to_plain(value), separators=(",", ":"), sort_keys=True)
        return StoreChange(self.key(row_key), text.encode())

    def remove(self, row_key: str) -> StoreChange:
        """Return the change that removes a record."""
        return StoreChange(self.key(row_key), None)

    def decode(self, value: bytes) -> ValueT:
        return self.from_plain(json.loads(value))


@dataclass(frozen=True, slots=True)
class Table(Mapping[str, ValueT]):
    """All records of a type at one revision, by row key."""

    rows: Mapping[str, ValueT] = field(default_factory=dict)
    revisions: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, key: str) -> ValueT:
        return self.rows[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, key: object) -> bool:
        return key in self.rows

    @overload
    def get(self, key: str, /) -> ValueT | None: ...
    @overload
    def get(self, key: str, /, default: ValueT | DefaultT) -> ValueT | DefaultT: ...
    def get(self, key: str, /, default: DefaultT | None = None) -> ValueT | DefaultT | None:
        return self.rows.get(key, default)

    def revision(self, key: str) -> int:
        """Return the revision that last wrote `key`; NEVER if it does not exist."""
        return self.revisions.get(key, NEVER)

    def replay(self, revision: int, changes: Mapping[str, ValueT | None]) -> "Table[ValueT]":
        """Return the table after the changes of a commit."""
        rows, revisions = dict(self.rows), dict(self.revisions)
        for key, value in changes.items():
            if value is None:
                rows.pop(key, None)
                revisions.pop(key, None)
            else:
                rows[key] = value
                revisions[key] = revision
        return Table(rows, revisions)
