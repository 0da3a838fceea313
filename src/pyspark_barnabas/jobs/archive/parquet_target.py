"""Archive as a directory of Parquet files, one subdirectory per run: data and state become visible by one rename.

A run writes below `_staging-...`, which Parquet readers ignore like all names with an underscore, and is renamed to
`run=<number>` when it is complete. Its manifest is in it and says how far every partition is archived: the newest run
has the state. A run that dies before the rename leaves only a staging directory, which the next run removes.
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

from barnabas.base import disk
from barnabas.base.file_lock import locked
from barnabas.base.ids import TopicPartition
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
    """An archive that cannot be continued, or a run whose result would not be correct."""


class PartSum(NamedTuple):
    """Records archived of one partition on one day (UTC); `checksum` is the sum of the row hashes modulo 2^64."""

    topic: str
    date: str
    partition: int
    records_count: int
    checksum: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class ArchiveManifest:
    """Manifest of a run; `ends` has all partitions, including those of which this run read nothing."""

    run: int
    isolation: str
    topic_ids: Mapping[str, str]  #: 32 hex digits
    starts: Mapping[TopicPartition, int]  #: of the partitions that this run read
    ends: Mapping[TopicPartition, int]
    sums: tuple[PartSum, ...] = field(default=())

    def to_json(self) -> str:
        fields = {
            "version": _VERSION,
            "run": self.run,
            "isolation": self.isolation,
            "topicIds": dict(self.topic_ids),
            "starts": _nested(self.starts),
            "ends": _nested(self.ends),
            "sums": [part._asdict() for part in self.sums],
        }
        return json.dumps(fields, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "ArchiveManifest":
        """Parse a manifest.

        :raises ValueError: The text is not a valid manifest.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields["version"] != _VERSION:
                raise ValueError(f"unsupported version {fields['version']}; expected {_VERSION}")
            return cls(
                fields["run"],
                fields["isolation"],
                fields["topicIds"],
                _flat(fields["starts"]),
                _flat(fields["ends"]),
                tuple(PartSum(**part) for part in fields["sums"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _nested(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for tp, offset in sorted(offsets.items()):
        nested.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return nested


def _flat(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, offsets in nested.items()
        for partition, offset in offsets.items()
    }


class ArchiveTarget:
    """Archive directory on a file system with atomic renames and working locks: local, not an object store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def lock_path(self) -> Path:
        return self.directory / _LOCK

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the archive's lock; it is released when the process ends in any way.

        :raises ArchiveError: Another run holds the lock.
        """
        with locked(
            self.lock_path,
            ArchiveError(f"another run is writing to {self.directory}; wait until it has finished"),
        ):
            yield

    def runs(self) -> list[int]:
        """Return the numbers of all runs.

        :raises ArchiveError: A number is missing.
        """
        names = os.listdir(self.directory) if self.directory.is_dir() else []
        numbers = sorted(int(match[1]) for match in map(_RUN.fullmatch, names) if match)
        if numbers != list(range(1, len(numbers) + 1)):
            missing = sorted(set(range(1, numbers[-1])) - set(numbers))
            message = f"{self.directory}: directory {self.path(missing[0]).name} is missing; restore it first"
            raise ArchiveError(message)
        return numbers

    def path(self, run: int) -> Path:
        return self.directory / f"run={run:08d}"

    def manifest_path(self, run: int) -> Path:
        return self.path(run) / MANIFEST

    def manifest(self, run: int) -> ArchiveManifest:
        """Read the manifest of a run.

        :raises ArchiveError: The manifest is missing or damaged.
        """
        path = self.manifest_path(run)
        try:
            return ArchiveManifest.from_json(path.read_text())
        except (FileNotFoundError, ValueError) as error:
            raise ArchiveError(f"{path} is not a valid archive manifest ({error})") from error

    def newest(self) -> ArchiveManifest | None:
        """Return the manifest of the newest run, which has the state; None if there are no runs."""
        runs = self.runs()
        return self.manifest(runs[-1]) if runs else None

    def records(self, spark: SparkSession) -> DataFrame:
        """Return the records of all runs, in the source's columns plus `date`."""
        return spark.read.schema(RECORDS_DDL).parquet(pattern_of(self.directory))

    def staging(self, run: int) -> Path:
        """Return the staging directory of a run and remove those of earlier runs. The caller holds the lock.

        The name is unique, because tasks of a killed driver may keep writing to their own for a while.
        """
        self._remove_staged()
        return self.directory / f"{_STAGING}-{run:08d}-{uuid4().hex}"

    def commit(self, manifest: ArchiveManifest, staged: Path) -> None:
        """Make the staged run visible; it is synced before the rename. The caller holds the lock."""
        (staged / MANIFEST).write_text(manifest.to_json())
        for parent, _, names in os.walk(staged):
            for name in names:
                disk.sync_path(Path(parent, name))
            disk.sync_path(Path(parent))
        staged.rename(self.path(manifest.run))
        disk.sync_path(self.directory)

    def _remove_staged(self) -> None:
        for path in self.directory.glob(f"{_STAGING}-*"):
            shutil.rmtree(path, ignore_errors=True)


def open_archive(directory: Path, kind: str = "") -> ArchiveTarget:
    """Open the archive in a directory in its own format; a new one gets the format `kind` (default: parquet).

    :raises ArchiveError: `kind` is unknown or differs from the archive's format, or the path is not valid for a table.
    """
    if kind not in ("", "parquet", "delta"):
        raise ArchiveError(f"unknown archive format '{kind}': expected parquet or delta")
    if (directory / "_delta_log").is_dir():
        actual_kind = "delta"
    elif ArchiveTarget(directory).runs():
        actual_kind = "parquet"
    else:
        actual_kind = kind or "parquet"
    if kind not in ("", actual_kind):
        raise ArchiveError(f"{directory} is an archive in the format {actual_kind}, not {kind}")
    if actual_kind == "parquet":
        return ArchiveTarget(directory)
    if flaw := table_flaw(directory):
        raise ArchiveError(f"{directory}: {flaw}")
    from pyspark_barnabas.jobs.archive.delta_target import DeltaTarget  # delta-rs is an optional dependency

    return DeltaTarget(directory)
