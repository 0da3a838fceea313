"""Values of the metadata store that were replaced or removed, in full, including secrets.

A rollback restores them. No API, log line, export or audit event contains them.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from barnabas.metadata.record_type import RecordType

#: The key of the single history of a store.
KEY = "self"


@dataclass(frozen=True, slots=True)
class FormerValue:
    """An earlier value of one record; the revision of the historical record is the one that replaced the value."""

    key: str  #: key in the store, such as `topic_configs/orders`
    plain: Any = field(repr=False)  #: in the JSON form of its record type
    since: int  #: the revision that wrote it
    ended_ms: int  #: since the epoch
    size_bytes: int = field(init=False)  #: of the key and the value in JSON

    def __post_init__(self) -> None:
        size_bytes = len(self.key) + len(json.dumps(self.plain, separators=(",", ":")))
        object.__setattr__(self, "size_bytes", size_bytes)

    @property
    def row(self) -> str:
        """The key of the historical row; unique, because no revision writes a key twice."""
        return f"{self.since}/{self.key}"


FORMER_VALUES: RecordType[FormerValue] = RecordType(
    "former_values",
    lambda value: [value.key, value.plain, value.since, value.ended_ms],
    lambda plain: FormerValue(*plain),
)

#: KEY -> the first revision from which all replaced values are kept; 0 means the revision that wrote this record.
#: Without the record, no history is kept.
HISTORY_START: RecordType[int] = RecordType("history_start", int, int)
