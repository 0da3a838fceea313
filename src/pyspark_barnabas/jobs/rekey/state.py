"""How far a copy is, as a file: plans are written before anything is done, so that a killed run is gone on with."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.base.file_lock import locked
from barnabas.log.files import sync_path
from pyspark_barnabas.jobs.rekey.order import CopyStep, Homes, RekeyError

_VERSION = 1
_STATE = "rekey.json"
_LOCK = "lock"


@dataclass
class Copying:
    """What is planned and done; every list only grows."""

    source: str
    source_id: str  #: 32 hex digits
    target: str
    homes: Homes
    any_place: bool  #: whether records in no home of their key may be copied
    settings: dict[
        str, str | None
    ]  #: configs of the target after the cut-over; None for the broker's default
    starts: dict[int, int]  #: where the first round begins
    ends: dict[int, int]  #: where the newest round ends
    steps: list[CopyStep] = field(default_factory=list)
    #: Of each step that has begun: the ends of the new partitions before anything of it was written.
    marks: list[dict[int, int]] = field(default_factory=list)
    done: int = 0  #: how many steps are committed for certain
    is_cut_over: bool = False

    def to_json(self) -> str:
        """The text of the file."""
        fields = {
            "version": _VERSION,
            "source": self.source,
            "sourceId": self.source_id,
            "target": self.target,
            "partitions": list(self.homes.counts),
            "targetPartitions": self.homes.target_count,
            "anyPlace": self.any_place,
            "settings": self.settings,
            "starts": self.starts,
            "ends": self.ends,
            "steps": [{"rank": each.rank, "ranges": each.ranges} for each in self.steps],
            "marks": self.marks,
            "done": self.done,
            "isCutOver": self.is_cut_over,
        }
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> "Copying":
        """The reverse.

        :raises ValueError: When it is none.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields["version"] != _VERSION:
                raise ValueError(f"version {fields['version']}, where {_VERSION} is known")
            return cls(
                fields["source"],
                fields["sourceId"],
                fields["target"],
                Homes(tuple(fields["partitions"]), fields["targetPartitions"]),
                fields["anyPlace"],
                fields["settings"],
                _offsets(fields["starts"]),
                _offsets(fields["ends"]),
                [CopyStep(each["rank"], tuple(map(tuple, each["ranges"]))) for each in fields["steps"]],
                [_offsets(each) for each in fields["marks"]],
                fields["done"],
                fields["isCutOver"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _offsets(fields: dict[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in fields.items()}


class RekeyDirectory:
    """Where the state of one copy is: a local directory, one for each copy."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out; the lock ends with the process, however that ends.

        :raises RekeyError: When another run is going on.
        """
        with locked(
            self.directory / _LOCK, RekeyError(f"another run has {self.directory}; wait for its end")
        ):
            yield

    def read(self) -> Copying | None:
        """The copy that was begun; None in a new directory.

        :raises RekeyError: When its file is damaged.
        """
        path = self.directory / _STATE
        try:
            return Copying.from_json(path.read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            message = f"{path} is no state of a copy ({error})"
            raise RekeyError(message) from error

    def write(self, state: Copying) -> None:
        """Keep it, whatever dies meanwhile or afterwards."""
        written = self.directory / f"{_STATE}.new"
        written.write_text(state.to_json())
        sync_path(written)
        os.replace(written, self.directory / _STATE)
        sync_path(self.directory)
