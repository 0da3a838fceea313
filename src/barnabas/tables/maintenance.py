"""Keeps a table fast and small: joins small files, deletes rows that are too old, and files that no version has."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from barnabas.objects.store import ObjectStore
from barnabas.tables.data_files import DataFileWriter, new_data_path
from barnabas.tables.evolution import aligned
from barnabas.tables.settings import TableSettings
from barnabas.tables.table import StoredTable, TableFile

#: Files are joined when there are so many of a size, so each row is written about once for each size.
_JOINED_FILES_MIN = 8
#: Each size of files is so many times the size below.
_SIZE_STEP = 8
_SMALLEST_SIZE_BYTES = 256 * 1024
_READ_ROWS_MAX = 64 * 1024


class Expired(NamedTuple):
    """What one call of `expire` deleted."""

    deleted_rows_count: int
    deleted_files_count: int


class TableMaintenance:
    def __init__(
        self, table: StoredTable, store: ObjectStore, settings: TableSettings, new_name: Callable[[], str]
    ) -> None:
        """:param new_name: Returns a name that no file has."""
        self._table = table
        self._store = store
        self._settings = settings
        self._new_name = new_name

    def expire(self, now_ms: int) -> Expired:
        """Delete rows that are too old, and files that no version of the table has.

        :raises ConcurrentCommit: If another writer committed meanwhile.
        """
        retention_ms = self._settings.retention_ms
        deleted_rows_count = 0 if retention_ms is None else self.delete_before(now_ms - retention_ms)
        return Expired(deleted_rows_count, self._table.clean(self._settings.history_ms))

    def join_files(self) -> int:
        """Join small files; return how many there were."""
        groups = files_to_join(self._table.files(), self._settings.target_file_bytes)
        if not groups:
            return 0
        joined = [file for group in groups for file in group]
        self._rewrite(groups, joined, keep=None, changes_rows=False)
        return len(joined)

    def delete_before(self, timestamp_ms: int) -> int:
        """Delete the rows of records whose timestamp is lower; return their number.

        Files are deleted whole; those with later rows, too, are written again without the old ones.
        """
        bound = pa.scalar(timestamp_ms * 1000, pa.int64()).cast(pa.timestamp("us", "UTC"))
        old = [
            file
            for file in self._table.files()
            if (self._has_older(file, bound) if file.lowest_ms is None else file.lowest_ms < timestamp_ms)
        ]
        if not old:
            return 0
        mixed = [file for file in old if file.highest_ms is None or file.highest_ms >= timestamp_ms]
        kept_count = self._rewrite([[file] for file in mixed], old, keep=bound, changes_rows=True)
        return sum(file.rows_count for file in old) - kept_count

    def _rewrite(
        self,
        groups: Iterable[Sequence[TableFile]],
        removed: Sequence[TableFile],
        *,
        keep: pa.Scalar | None,
        changes_rows: bool,
    ) -> int:
        """Write the rows of each group to a file, in place of the removed ones; return the number of rows.

        :param keep: Only rows with this timestamp or a later one; None for all.
        """
        added = []
        for group in groups:
            writer = DataFileWriter(
                self._store,
                self._table.file_schema,
                lambda: new_data_path(self._table.data_directory, self._new_name),
                self._settings.target_file_bytes,
            )
            try:
                for part in self._rows(group):
                    rows = aligned(part, self._table.schema)
                    if keep is not None:
                        is_old = pc.less(rows.column("kafka_timestamp"), keep)
                        rows = rows.filter(pc.invert(pc.fill_null(is_old, False)))
                    writer.write(rows)
            except BaseException:
                writer.discard()
                raise
            added += writer.close()
        self._table.replace(removed, added, changes_rows=changes_rows)
        return sum(file.rows_count for file in added)

    def _has_older(self, file: TableFile, bound: pa.Scalar) -> bool:
        """Read whether a file has rows with an earlier timestamp, because its statistics do not say."""
        return any(
            pc.any(pc.less(rows.column("kafka_timestamp").cast(bound.type), bound)).as_py()
            for rows in self._rows([file], ["kafka_timestamp"])
        )

    def _rows(
        self, files: Sequence[TableFile], columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        for file in files:
            # Spark writes times of 96 bits by default; as nanoseconds, some would be others, such as 9999-12-31
            with (
                self._store.open(file.path) as content,
                pq.ParquetFile(content, coerce_int96_timestamp_unit="us") as parquet,
            ):
                for group in range(parquet.num_row_groups):  # a batch of several would have no limit in bytes
                    yield from parquet.iter_batches(_READ_ROWS_MAX, [group], columns)


def files_to_join(files: Sequence[TableFile], target_bytes: int) -> list[list[TableFile]]:
    """Return groups of files of one size that are to become a file each, of the next size if they suffice.

    :param target_bytes: The size of a file that is large enough.
    """
    for low, high in _sizes(target_bytes):
        alike = [file for file in files if low <= file.size_bytes < high]
        if len(alike) >= _JOINED_FILES_MIN:
            groups = _groups(sorted(alike, key=lambda file: (file.lowest_ms or 0, file.path)), high)
            return [group for group in groups if len(group) > 1]
    return []


def _sizes(target_bytes: int) -> list[tuple[int, int]]:
    """Return the sizes that files grow through, as ranges; larger files come first, because there are fewer."""
    bounds = [target_bytes]
    while bounds[-1] // _SIZE_STEP >= _SMALLEST_SIZE_BYTES:
        bounds.append(bounds[-1] // _SIZE_STEP)
    return list(zip([*bounds[1:], 0], bounds, strict=True))


def _groups(files: Sequence[TableFile], limit_bytes: int) -> list[list[TableFile]]:
    """Divide files, in their order, into groups that reach the limit; only the last one may not."""
    groups: list[list[TableFile]] = [[]]
    size_bytes = 0
    for file in files:
        if size_bytes >= limit_bytes:
            groups.append([])
            size_bytes = 0
        groups[-1].append(file)
        size_bytes += file.size_bytes
    return groups
