"""What the jobs need of an archive, in a directory or an object store."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession

from pyspark_barnabas.jobs.archive.manifest import ArchiveManifest

#: Where a run is until it is complete.
Staged = TypeVar("Staged")


class Archive(Protocol):
    """Complete runs of an archive."""

    def runs(self) -> Sequence[int]:
        """Return the numbers of all runs: 1, 2, 3...

        :raises ArchiveError: A number is missing.
        """
        ...

    def manifest(self, run: int) -> ArchiveManifest:
        """Read the manifest of a run.

        :raises ArchiveError: The manifest is missing or damaged.
        """
        ...

    def records(self, spark: SparkSession, topics: Sequence[str] = ()) -> DataFrame:
        """Return the records of all runs, in the source's columns plus `date`.

        :param topics: Topics that the caller needs; empty for all. There may be records of others.
        """
        ...


class WritableArchive(Archive, Protocol[Staged]):
    """`Archive` to which runs are added."""

    def newest(self) -> ArchiveManifest | None:
        """Return the manifest of the newest run, which has the state; None if there are no runs."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Return the block in which a run is written.

        :raises ArchiveError: Another run is being written, or was complete first.
        """
        ...

    def staging(self, run: int) -> Staged:
        """Return where a run is until it is complete, and remove what earlier runs have left."""
        ...

    def write(self, records: DataFrame, staged: Staged) -> None:
        """Write rows in the source's columns plus `date`."""
        ...

    def staged_rows(self, records: DataFrame, staged: Staged) -> DataFrame:
        """Return what was written of `records`."""
        ...

    def commit(self, manifest: ArchiveManifest, staged: Staged) -> None:
        """Make the run visible.

        :raises ArchiveError: Another run with this number is complete.
        """
        ...
