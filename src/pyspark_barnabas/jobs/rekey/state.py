"""State file of a copy: plans are saved before they are carried out, so that a killed run can be continued."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.base import disk
from barnabas.base.file_lock import locked
from pyspark_barnabas.jobs.rekey.order import CopyStep, Homes, RekeyError

_VERSION = 2
_STATE = "rekey.json"
_LOCK = "lock"


@dataclass
class Copying:
    """State of a copy; every list only grows."""

    source: str
    source_id: str  #: 32 hex digits
    target: str
    sink_name: str  #: of this copy alone: names of deleted copies have marks of their steps
    homes: Homes
    any_partition: bool  #: whether records in no home of their key may be copied
    settings: dict[
        str, str | None
    ]  #: configs of the target after the cut-over; None for the broker's default
    starts: dict[int, int]  #: offsets at which the first round begins
    ends: dict[int, int]  #: offsets at which the newest round ends
    steps: list[CopyStep] = field(default_factory=list)
    #: For each step that has begun: the ends of the new partitions before its first write.
    marks: list[dict[int, int]] = field(default_factory=list)
    done: int = 0  #: number of steps that are certainly committed
    is_cut_over: bool = False
    target_id: str | None = None  #: 32 hex digits; None until the target exists

    def to_json(self) -> str:
        fields = {
            "version": _VERSION,
            "source": self.source,
            "sourceId": self.source_id,
            "target": self.target,
            "targetId": self.target_id,
            "sinkName": self.sink_name,
            "partitions": list(self.homes.counts),
            "targetPartitions": self.homes.target_count,
            "anyPlace": self.any_partition,
            "settings": self.settings,
            "starts": self.starts,
            "ends": self.ends,
            "steps": [{"rank": step.rank, "ranges": step.ranges} for step in self.steps],
            "marks": self.marks,
            "done": self.done,
            "isCutOver": self.is_cut_over,
        }
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> "Copying":
        """Parse a state file.

        :raises ValueError: The text is not a valid state.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields["version"] != _VERSION:
                raise ValueError(f"unsupported version {fields['version']}; expected {_VERSION}")
            return cls(
                fields["source"],
                fields["sourceId"],
                fields["target"],
                fields["sinkName"],
                Homes(tuple(fields["partitions"]), fields["targetPartitions"]),
                fields["anyPlace"],
                fields["settings"],
                _offsets(fields["starts"]),
                _offsets(fields["ends"]),
                [CopyStep(step["rank"], tuple(map(tuple, step["ranges"]))) for step in fields["steps"]],
                [_offsets(ends) for ends in fields["marks"]],
                fields["done"],
                fields["isCutOver"],
                fields["targetId"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _offsets(fields: dict[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in fields.items()}


class RekeyDirectory:
    """Local directory with the state of one copy."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory's lock; it is released when the process ends in any way.

        :raises RekeyError: Another run holds the lock.
        """
        with locked(
            self.directory / _LOCK,
            RekeyError(f"another run is using {self.directory}; wait until it has finished"),
        ):
            yield

    def read(self) -> Copying | None:
        """Read the state; return None in a new directory.

        :raises RekeyError: The file is damaged.
        """
        path = self.directory / _STATE
        try:
            return Copying.from_json(path.read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            message = f"{path} is not a valid state file of a copy ({error})"
            raise RekeyError(message) from error

    def write(self, state: Copying) -> None:
        """Replace the state file atomically; it is synced before and after the rename."""
        written = self.directory / f"{_STATE}.new"
        written.write_text(state.to_json())
        disk.sync_path(written)
        os.replace(written, self.directory / _STATE)
        disk.sync_path(self.directory)
