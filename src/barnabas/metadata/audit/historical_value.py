"""What the store had before: values that were replaced or removed, as they were, secrets included.

They are what a rollback restores. No API, log line, export or audit event tells of them.
"""

from dataclasses import dataclass, field
from typing import Any

from barnabas.metadata.record_type import RecordType

#: There is one history to a store.
KEY = "self"


@dataclass(frozen=True, slots=True)
class FormerValue:
    """One row of the store as it was; its own row's revision is the one that ended it."""

    key: str  #: the store's: `topic_configs/orders`
    plain: Any = field(repr=False)  #: as its noun writes it
    since: int  #: the revision that wrote it
    ended_ms: int  #: since the epoch

    @property
    def row(self) -> str:
        """Where it stands: no revision writes a key twice."""
        return f"{self.since}/{self.key}"


FORMER_VALUES: RecordType[FormerValue] = RecordType(
    "former_values",
    lambda value: [value.key, value.plain, value.since, value.ended_ms],
    lambda plain: FormerValue(*plain),
)

#: KEY -> the revision from which on all that was replaced is known; 0 stands for the one that wrote the row.
#: Without the row nothing is kept.
HISTORY_START: RecordType[int] = RecordType("history_start", int, int)
