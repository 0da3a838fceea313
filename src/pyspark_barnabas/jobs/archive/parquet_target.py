"""A directory of archived runs: data and state become visible together, by one rename.

A run writes below `_staging-...`, which readers of Parquet pass over as they do all names with an underscore, and is
renamed to `run=<number>` when it is whole. Its manifest lies in it and says how far every partition is archived: the
newest run has the state. Whatever dies before the rename leaves nothing but a directory that the next run removes.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from barnabas.base.file_lock import locked
from barnabas.base.ids import TopicPartition
from barnabas.log.files import sync_path
from pyspark_barnabas.paths import pattern_of, table_flaw

MANIFEST = "_manifest.json"
_LOCK = "_lock"
_STAGING = "_staging"
_VERSION = 1
_RUN = re.compile(r"run=(\d{8})")


#: The source's columns with headers, and the day (UTC).
RECORDS_DDL = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>, topic string, date string"
)


class ArchiveError(ValueError):
    """An archive that cannot be gone on with, or a run that would not be right."""


class PartSum(NamedTuple):
    """What is archived of one partition on one day (UTC): `checksum` is the sum of the rows' hashes modulo 2^64."""

    topic: str
    date: str
    partition: int
    records_count: int
    checksum: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class ArchiveManifest:
    """A run; `ends` has all partitions, with those that this run read nothing of."""

    run: int
    isolation: str
    topic_ids: Mapping[str, str]  #: 32 hex digits
    starts: Mapping[TopicPartition, int]  #: of the partitions that this run read
    ends: Mapping[TopicPartition, int]
    sums: tuple[PartSum, ...] = field(default=())

    def to_json(self) -> str:
        """The text of the file."""
        fields = {
            "version": _VERSION,
            "run": self.run,
            "isolation": self.isolation,
            "topicIds": dict(self.topic_ids),
            "starts": _nested(self.starts),
            "ends": _nested(self.ends),
            "sums": [each._asdict() for each in self.sums],
        }
        return json.dumps(fields, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ArchiveManifest":
        """The manifest in a file.

        :raises ValueError: When it is none.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields["version"] != _VERSION:
                raise ValueError(f"version {fields['version']}, where {_VERSION} is known")
            return cls(
                fields["run"],
                fields["isolation"],
                fields["topicIds"],
                _flat(fields["starts"]),
                _flat(fields["ends"]),
                tuple(PartSum(**each) for each in fields["sums"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _nested(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for place, offset in sorted(offsets.items()):
        nested.setdefault(place.topic, {})[str(place.partition)] = offset
    return nested


def _flat(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, offsets in nested.items()
        for partition, offset in offsets.items()
    }


class ArchiveTarget:
    """A directory on a file system whose renames are atomic and whose locks hold: a local one, not an object store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def lock_path(self) -> Path:
        """The file that a run locks."""
        return self.directory / _LOCK

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out; the lock ends with the process, however that ends.

        :raises ArchiveError: When another run is going on.
        """
        with locked(
            self.lock_path, ArchiveError(f"another run is writing to {self.directory}; wait for its end")
        ):
            yield

    def runs(self) -> list[int]:
        """The numbers of all runs.

        :raises ArchiveError: When one is missing.
        """
        names = os.listdir(self.directory) if self.directory.is_dir() else []
        numbers = sorted(int(match[1]) for match in map(_RUN.fullmatch, names) if match)
        if numbers != list(range(1, len(numbers) + 1)):
            missing = sorted(set(range(1, numbers[-1])) - set(numbers))
            message = f"{self.directory} lacks {self.path(missing[0]).name}: bring it back first"
            raise ArchiveError(message)
        return numbers

    def path(self, run: int) -> Path:
        """The directory of a run."""
        return self.directory / f"run={run:08d}"

    def manifest_path(self, run: int) -> Path:
        """Where the manifest of a run lies."""
        return self.path(run) / MANIFEST

    def manifest(self, run: int) -> ArchiveManifest:
        """What a run did.

        :raises ArchiveError: When its manifest is missing or damaged.
        """
        path = self.manifest_path(run)
        try:
            return ArchiveManifest.from_json(path.read_text())
        except (FileNotFoundError, ValueError) as error:
            raise ArchiveError(f"{path} is no manifest of a run ({error})") from error

    def newest(self) -> ArchiveManifest | None:
        """The newest run, which has the state; None in an archive without runs."""
        runs = self.runs()
        return self.manifest(runs[-1]) if runs else None

    def records(self, spark: SparkSession) -> DataFrame:
        """All records of all runs, in the source's columns, and `date`."""
        return spark.read.schema(RECORDS_DDL).parquet(pattern_of(self.directory))

    def staging(self, run: int) -> Path:
        """Where a run writes; what others have left is removed. Under the lock.

        The name is its own: tasks of a driver that was killed may go on for a while, into theirs.
        """
        self._remove_staged()
        return self.directory / f"{_STAGING}-{run:08d}-{uuid4().hex}"

    def commit(self, manifest: ArchiveManifest, staged: Path) -> None:
        """Make the staged run visible; it is on the disk before its name is. Under the lock."""
        (staged / MANIFEST).write_text(manifest.to_json())
        for parent, _, names in os.walk(staged):
            for name in names:
                sync_path(Path(parent, name))
            sync_path(Path(parent))
        staged.rename(self.path(manifest.run))
        sync_path(self.directory)

    def _remove_staged(self) -> None:
        for path in self.directory.glob(f"{_STAGING}-*"):
            shutil.rmtree(path, ignore_errors=True)


def open_archive(directory: Path, kind: str = "") -> ArchiveTarget:
    """The archive in a directory, of the kind that it is; a new one is of Parquet files or as `kind` says.

    :raises ArchiveError: For a kind that is unknown, or not that of the archive; for a path that no table can have.
    """
    if kind not in ("", "parquet", "delta"):
        raise ArchiveError(f"an archive is of the format parquet or delta, not {kind}")
    if (directory / "_delta_log").is_dir():
        found = "delta"
    elif ArchiveTarget(directory).runs():
        found = "parquet"
    else:
        found = kind or "parquet"
    if kind not in ("", found):
        raise ArchiveError(f"{directory} is an archive of the format {found}, not {kind}")
    if found == "parquet":
        return ArchiveTarget(directory)
    if flaw := table_flaw(directory):
        raise ArchiveError(f"{directory}: {flaw}")
    from pyspark_barnabas.jobs.archive.delta_target import DeltaTarget  # delta-rs, for those who use it

    return DeltaTarget(directory)
