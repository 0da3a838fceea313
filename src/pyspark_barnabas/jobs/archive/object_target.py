"""Archive in an object store: a run becomes visible by the creation of its manifest, which lists its files.

There is no rename and no lock. A run writes files with unique names, and then creates its manifest unless one exists:
of two runs at once, one succeeds. Files that no manifest lists come from runs that died or lost; they are deleted when
a run with their number is complete.

The layout is that of archives in directories, so archives can be copied from one to the other.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from barnabas.objects.location import ObjectLocation
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectNotFound, ObjectStore, ObjectStoreError
from pyspark_barnabas.jobs.archive.manifest import ArchivedFile, ArchiveError, ArchiveManifest
from pyspark_barnabas.jobs.archive.object_files import ObjectFiles, is_own_file
from pyspark_barnabas.jobs.archive.parquet_target import MANIFEST

_RUN = re.compile(r"run=(\d{8})")
_FILE = re.compile(r"run=\d{8}/topic=(?P<topic>[^/]+)/date=(?P<date>[^/]+)/[^/_.][^/]*\.parquet")


@dataclass
class StagedFiles:
    """Files of a run that is not complete."""

    run: int
    written: tuple[ArchivedFile, ...] = ()


class ObjectTarget:
    """`WritableArchive` in an object store."""

    def __init__(self, location: ObjectLocation, settings: StoreSettings, store: ObjectStore) -> None:
        self.directory = location
        self.store = store
        self.settings = settings
        self._files = ObjectFiles(location, settings)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A run that is complete first deletes the files of this one."""
        runs_count = len(self.runs())
        try:
            yield
        except ArchiveError:
            raise
        except Exception as error:
            if len(self.runs()) > runs_count:
                raise self._outrun() from error
            raise

    def runs(self) -> list[int]:
        """Only the last directory may be that of an incomplete run."""
        matches = map(_RUN.fullmatch, self.store.directories())
        numbers = sorted(int(match[1]) for match in matches if match)
        if numbers and not self.has_manifest(numbers[-1]):
            numbers.pop()
        missing = sorted(set(range(1, len(numbers) + 1)) - set(numbers))
        if missing:
            message = f"{self.directory}: directory {directory_of(missing[0])} is missing; restore it first"
            raise ArchiveError(message)
        return numbers

    def manifest(self, run: int) -> ArchiveManifest:
        key = self.manifest_key(run)
        try:
            return ArchiveManifest.from_json(self.store.read(key).decode())
        except (FileNotFoundError, ValueError) as error:
            message = f"{self.directory / key} is not a valid archive manifest ({error})"
            raise ArchiveError(message) from error

    def newest(self) -> ArchiveManifest | None:
        runs = self.runs()
        return self.manifest(runs[-1]) if runs else None

    def records(self, spark: SparkSession, topics: Sequence[str] = ()) -> DataFrame:
        files = self.files()
        return self._files.read(spark, [file for file in files if not topics or file.topic in topics])

    def files(self) -> Sequence[ArchivedFile]:
        """Return the files of all runs."""
        return [file for run in self.runs() for file in self.files_of(self.manifest(run))]

    def files_of(self, manifest: ArchiveManifest) -> Sequence[ArchivedFile]:
        """Return the files that the manifest lists; if it comes from a directory, those that exist."""
        if manifest.files is not None:
            return manifest.files
        stored = self.store.list(directory_of(manifest.run))
        matches = ((_FILE.fullmatch(key), size_bytes) for key, size_bytes in stored)
        return [
            ArchivedFile(match[0], match["topic"], match["date"], size_bytes)
            for match, size_bytes in matches
            if match
        ]

    def staging(self, run: int) -> StagedFiles:
        """Return the files of a new run, and delete those that runs with the previous number left late."""
        if run > 1:
            self._remove_unlisted(self.manifest(run - 1))
        return StagedFiles(run)

    def write(self, records: DataFrame, staged: StagedFiles) -> None:
        staged.written = self._files.write(records, self.file_directory(staged.run))

    def staged_rows(self, records: DataFrame, staged: StagedFiles) -> DataFrame:
        return self._files.read(records.sparkSession, staged.written)

    def commit(self, manifest: ArchiveManifest, staged: StagedFiles) -> None:
        self._remove_unlisted(self.create_manifest(manifest, staged))

    def create_manifest(self, manifest: ArchiveManifest, staged: StagedFiles) -> ArchiveManifest:
        """Create the manifest with the files that were written; delete these if there is one already.

        :raises ArchiveError: Another run with this number has its manifest.
        """
        complete = replace(manifest, files=staged.written)
        if not self.store.create(self.manifest_key(manifest.run), complete.to_json().encode()):
            self.store.delete(file.key for file in staged.written)
            raise self._outrun()
        return complete

    def file_directory(self, run: int) -> str:
        """Return the directory of a run's files, below the location; empty for the location itself."""
        return directory_of(run)

    def manifest_key(self, run: int) -> str:
        """Return the key of a run's manifest."""
        return manifest_key(run)

    def _remove_unlisted(self, manifest: ArchiveManifest) -> None:
        """Delete the files of a complete run that its manifest does not list; no run can list them any more."""
        if manifest.files is None:
            return
        listed = {file.key for file in manifest.files}
        with suppress(ObjectStoreError):  # without permission to delete they stay; no reader uses them
            stored = self.store.list(directory_of(manifest.run))
            self.store.delete([key for key, _ in stored if is_own_file(key) and key not in listed])

    def has_manifest(self, run: int) -> bool:
        """Whether a run has its manifest, which may be damaged."""
        try:
            return self.store.size_bytes(self.manifest_key(run)) >= 0
        except ObjectNotFound:
            return False

    def _outrun(self) -> ArchiveError:
        return ArchiveError(f"another run wrote to {self.directory} and was complete first; run again")


def directory_of(run: int) -> str:
    """Return the directory of a run's files, below the location of the archive."""
    return f"run={run:08d}"


def manifest_key(run: int) -> str:
    return f"{directory_of(run)}/{MANIFEST}"
