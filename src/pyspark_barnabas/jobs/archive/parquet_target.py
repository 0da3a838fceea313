"""Archive as a directory of Parquet files, one subdirectory per run: data and state become visible by one rename.

A run writes below `_staging-...`, which Parquet readers ignore like all names with an underscore, and is renamed to
`run=<number>` when it is complete. Its manifest is in it and says how far every partition is archived: the newest run
has the state. A run that dies before the rename leaves only a staging directory, which the next run removes.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from barnabas.base import disk
from barnabas.base.file_lock import locked
from pyspark_barnabas.jobs.archive.manifest import RECORDS_DDL, ArchiveError, ArchiveManifest
from pyspark_barnabas.paths import pattern_of, uri

MANIFEST = "_manifest.json"
_LOCK = "_lock"
_STAGING = "_staging"
_RUN = re.compile(r"run=(\d{8})")


class ArchiveTarget:
    """`WritableArchive` in a directory on a file system with atomic renames and working locks."""

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
        runs = self.runs()
        return self.manifest(runs[-1]) if runs else None

    def records(self, spark: SparkSession, topics: Sequence[str] = ()) -> DataFrame:
        return spark.read.schema(RECORDS_DDL).parquet(pattern_of(self.directory))

    def write(self, records: DataFrame, staged: Path) -> None:
        records.write.partitionBy("topic", "date").parquet(uri(staged))

    def staged_rows(self, records: DataFrame, staged: Path) -> DataFrame:
        return records.sparkSession.read.schema(records.schema).parquet(pattern_of(staged))

    def staging(self, run: int) -> Path:
        """Return the staging directory of a run and remove those of earlier runs. The caller holds the lock.

        The name is unique, because tasks of a killed driver may keep writing to their own for a while.

        :raises PathError: Spark could not read the directory.
        """
        self._remove_staged()
        staged = self.directory / f"{_STAGING}-{run:08d}-{uuid4().hex}"
        pattern_of(staged)
        return staged

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
