"""State of a restore with a map: what a later run needs to continue it, and a translation of empty partitions."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pyspark_barnabas.jobs.restore.plan import RestoreError

#: Its file in the map's directory.
STATE = "_restore.json"
_VERSION = 1


class MappedPart(NamedTuple):
    """A partition to restore: offsets [start, end) of the archive, appended from offset `begin` in the topic."""

    topic: str  #: of the archive
    partition: int
    start: int
    end: int
    records_count: int
    restored_topic: str
    begin: int


@dataclass(frozen=True)
class RestoreState:
    """State that a later run needs to continue this one."""

    archive: str
    sink_name: str
    batches_count: int
    parts: tuple[MappedPart, ...]
    done_count: int = 0  #: number of batches that are certainly written; one more may be

    def to_json(self) -> str:
        parts = [part._asdict() for part in self.parts]
        fields = {
            "version": _VERSION,
            "archive": self.archive,
            "sinkName": self.sink_name,
            "batches": self.batches_count,
            "done": self.done_count,
            "parts": parts,
        }
        return json.dumps(fields, indent=1)

    @classmethod
    def read(cls, path: Path) -> "RestoreState | None":
        if not path.exists():
            return None
        try:
            fields: dict[str, Any] = json.loads(path.read_text())
            if fields["version"] != _VERSION:
                raise ValueError(f"unsupported version {fields['version']}; expected {_VERSION}")
            parts = tuple(MappedPart(**part) for part in fields["parts"])
            return cls(fields["archive"], fields["sinkName"], fields["batches"], parts, fields["done"])
        except (KeyError, TypeError, ValueError) as error:
            raise RestoreError(f"{path} cannot be used: {error}") from error
