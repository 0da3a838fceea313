"""Archive as a Delta table in an object store.

As in other object stores, the creation of a run's manifest decides, and lists the files. The commit to the table adds
these files under the number of the run as an application transaction. If a run dies in between, the next one commits
first. Readers see only what is committed to the table.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from barnabas.objects.location import ObjectLocation
from barnabas.objects.settings import StoreSettings
from barnabas.objects.store import ObjectNotFound, ObjectStore, ObjectStoreError
from pyspark_barnabas.jobs.archive.delta_target import (
    APPLICATION,
    PARTITIONED_BY,
    manifest_name,
    table_schema,
)
from pyspark_barnabas.jobs.archive.manifest import ArchivedFile, ArchiveError, ArchiveManifest
from pyspark_barnabas.jobs.archive.object_target import ObjectTarget, StagedFiles

#: delta-rs writes other characters as %-escapes, which it then does not find.
_PREFIX = re.compile("[A-Za-z0-9._=/-]*")
#: Of the lines in messages of delta-rs, which have a cause each.
_COLOURS = re.compile(r"\x1b\[\d*m|↳")
_CAUSE_CHARACTERS_MAX = 300


class DeltaObjectTarget(ObjectTarget):
    """`WritableArchive` in an object store that any Delta reader can read."""

    def __init__(self, location: ObjectLocation, settings: StoreSettings, store: ObjectStore) -> None:
        """Open the archive.

        :raises ArchiveError: The location is not valid for a Delta table.
        """
        super().__init__(location, settings, store)
        if not _PREFIX.fullmatch(location.prefix):
            message = f"{location}: the prefix of a Delta table must have only letters, digits and . _ - = /"
            raise ArchiveError(message)
        self._options = settings.delta_options()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """If the last run died before it was committed, it is committed now."""
        pending_run = len(self.runs()) + 1
        if self.has_manifest(pending_run):
            self._commit_pending(super().manifest(pending_run))
        with super().locked():
            yield

    def runs(self) -> list[int]:
        """Return the numbers of all committed runs.

        :raises ArchiveError: The table is not an archive.
        """
        table = self._table()
        if table is None:
            return []
        committed = table.transaction_version(APPLICATION)
        if committed is None and table.metadata().name != APPLICATION:
            message = f"{self.directory} is a Delta table but not an archive: use another location"
            raise ArchiveError(message)
        return list(range(1, (committed or 0) + 1))

    def manifest(self, run: int) -> ArchiveManifest:
        """Files are those of the table, which may have been optimized since."""
        return replace(super().manifest(run), files=None)

    def files(self) -> Sequence[ArchivedFile]:
        """Return the files of the table."""
        table = self._table()
        if table is None:
            return []
        rows = table.get_add_actions(flatten=True).select(
            ["path", "partition.topic", "partition.date", "size_bytes"]
        )
        return [
            ArchivedFile(*(value.as_py() for value in row))
            for row in zip(*(rows.column(index) for index in range(4)), strict=True)
        ]

    def staging(self, run: int) -> StagedFiles:
        """Files of runs that died belong to no table; VACUUM deletes them."""
        return StagedFiles(run)

    def commit(self, manifest: ArchiveManifest, staged: StagedFiles) -> None:
        self._commit_to_table(self.create_manifest(manifest, staged))

    def file_directory(self, run: int) -> str:
        return ""

    def manifest_key(self, run: int) -> str:
        return manifest_name(run)

    def _commit_pending(self, manifest: ArchiveManifest) -> None:
        """Commit a run whose process died before it did.

        :raises ArchiveError: One of its files is gone.
        """
        if manifest.files is None:  # copied from a directory, where such manifests are leftovers
            self.store.delete([self.manifest_key(manifest.run)])
            return
        for file in manifest.files:
            try:
                size_bytes = self.store.size_bytes(file.key)
            except ObjectNotFound:
                size_bytes = 0
            if size_bytes != file.size_bytes:
                message = (
                    f"{self.directory / file.key} has {size_bytes} bytes, but {file.size_bytes} were archived: delete "
                    f"{self.manifest_key(manifest.run)} to repeat run {manifest.run}"
                )
                raise ArchiveError(message)
        self._commit_to_table(manifest)

    def _commit_to_table(self, manifest: ArchiveManifest) -> None:
        """Add the files of a run to the table, unless another process that found its manifest has."""
        actions: list[AddAction | RemoveAction] = [_added(file) for file in manifest.files or ()]
        properties = CommitProperties(
            custom_metadata={"barnabas.run": str(manifest.run)},
            app_transactions=[Transaction(APPLICATION, manifest.run)],
        )
        schema = table_schema()
        with self._errors():
            table = DeltaTable.create(
                str(self.directory),
                schema,
                mode="ignore",
                partition_by=PARTITIONED_BY,
                name=APPLICATION,
                storage_options=self._options,
            )
            if (table.transaction_version(APPLICATION) or 0) >= manifest.run:
                return
            try:
                table.create_write_transaction(
                    actions, "append", schema, PARTITIONED_BY, commit_properties=properties
                )
            except CommitFailedError:
                if manifest.run not in self.runs():
                    raise

    def _table(self) -> DeltaTable | None:
        url = str(self.directory)
        with self._errors():
            if not DeltaTable.is_deltatable(url, self._options):
                return None
            return DeltaTable(url, storage_options=self._options)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as error:
            if isinstance(error, ObjectStoreError):
                raise
            cause = " ".join(self.settings.redacted(_COLOURS.sub("", str(error))).split())[
                :_CAUSE_CHARACTERS_MAX
            ]
            raise ObjectStoreError(f"cannot use the table {self.directory}: {cause}") from None


def _added(file: ArchivedFile) -> AddAction:
    stats = json.dumps({"numRecords": file.records_count})
    values: dict[str, str | None] = {"topic": file.topic, "date": file.date}
    return AddAction(file.key, file.size_bytes, values, time.time_ns() // 1_000_000, True, stats)
