"""Archive as a Delta table: data and state become visible together, by one commit of delta-rs.

A run writes its files and its manifest into the table's directory before the commit. The commit adds the files and
carries the run's number as an application transaction. Manifests with a later number and files without a commit are
leftovers of a run that died; they are ignored, and the next run does the same work again.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import DataFrame, SparkSession

from barnabas.base import disk
from barnabas.log.files import write_atomically
from barnabas.reading.rows import ARROW_TYPES, arrow_schema_of
from pyspark_barnabas.jobs.archive.manifest import RECORDS_DDL, ArchiveError, ArchiveManifest
from pyspark_barnabas.jobs.archive.parquet_target import ArchiveTarget
from pyspark_barnabas.paths import pattern_of, uri

#: Application id of the transactions (one per run), and the name of the table.
APPLICATION = "barnabas-archive"
PARTITIONED_BY = ["topic", "date"]
_STATE_DIRECTORY = "_barnabas"


class DeltaTarget(ArchiveTarget):
    """`ArchiveTarget` that any Delta reader can read; a run becomes visible as a whole."""

    @property
    def lock_path(self) -> Path:
        """See `ArchiveTarget`; readers and VACUUM ignore names that begin with an underscore."""
        return self.directory / _STATE_DIRECTORY / "lock"

    def runs(self) -> list[int]:
        """Return the numbers of all committed runs.

        :raises ArchiveError: The table is not an archive.
        """
        if not DeltaTable.is_deltatable(str(self.directory)):
            return []
        table = DeltaTable(self.directory)
        committed = table.transaction_version(APPLICATION)
        if committed is None and table.metadata().name != APPLICATION:
            message = f"{self.directory} is a Delta table but not an archive: use another directory"
            raise ArchiveError(message)
        return list(range(1, (committed or 0) + 1))

    def manifest_path(self, run: int) -> Path:
        return self.directory / manifest_name(run)

    def records(self, spark: SparkSession, topics: Sequence[str] = ()) -> DataFrame:
        files = DeltaTable(self.directory).file_uris()
        if not files:
            return spark.createDataFrame([], RECORDS_DDL)
        reader = spark.read.schema(RECORDS_DDL).option("basePath", uri(self.directory))
        return reader.parquet(*(pattern_of(Path(unquote(file))) for file in files))

    def commit(self, manifest: ArchiveManifest, staged: Path) -> None:
        """Move the files into the table and commit them together with the run. The caller holds the lock."""
        actions: list[AddAction | RemoveAction] = [
            self._added(path, staged) for path in sorted(staged.glob("*/*/*.parquet"))
        ]
        write_atomically(self.manifest_path(manifest.run), manifest.to_json().encode())
        schema = table_schema()
        table = DeltaTable.create(
            self.directory, schema, mode="ignore", partition_by=PARTITIONED_BY, name=APPLICATION
        )
        table.create_write_transaction(
            actions,
            "append",
            schema,
            PARTITIONED_BY,
            commit_properties=CommitProperties(
                custom_metadata={"barnabas.run": str(manifest.run)},
                app_transactions=[Transaction(APPLICATION, manifest.run)],
            ),
        )
        for path in (*(self.directory / "_delta_log").glob("*.json"), self.directory / "_delta_log"):
            disk.sync_path(path)
        self._remove_staged()

    def _added(self, path: Path, staged: Path) -> AddAction:
        relative_path = path.relative_to(staged)
        target = self.directory / relative_path
        rows_count = pq.read_metadata(path).num_rows
        disk.sync_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        for parent in target.parents[:3]:
            disk.sync_path(parent)
        values: dict[str, str | None] = {}
        for part in relative_path.parts[:-1]:
            name, _, value = part.partition("=")
            values[name] = value
        stats = json.dumps({"numRecords": rows_count})
        return AddAction(
            relative_path.as_posix(), target.stat().st_size, values, time.time_ns() // 1_000_000, True, stats
        )


def manifest_name(run: int) -> str:
    """Return the path of a run's manifest, below the location of the table."""
    return f"{_STATE_DIRECTORY}/run={run:08d}.json"


def table_schema() -> pa.Schema:
    columns = [name for name in ARROW_TYPES if name != "topic"]
    return pa.schema(
        [*arrow_schema_of(columns), pa.field("topic", pa.string()), pa.field("date", pa.string())]
    )
