"""Writes rows as Parquet files. A file belongs to no table until it is committed."""

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.objects.store import ObjectStore

#: Rows are collected up to this size, which becomes a row group: memory is bounded, and groups are worth reading.
_ROW_GROUP_BYTES = 32 * 1024 * 1024
#: Texts that are longer are left out of statistics.
_STATISTICS_CHARS_MAX = 32
_DATA_NAME = re.compile(r"part-[^/]+\.zstd\.parquet")
_COPY_BYTES = 4 * 1024 * 1024


def new_data_path(directory: str, new_name: Callable[[], str]) -> str:
    """Return another path for a data file.

    :param directory: Below the location; empty, or with a slash at its end.
    """
    return f"{directory}part-{new_name()}.zstd.parquet"


def is_data_path(path: str, directory: str) -> bool:
    """Return whether a path is one that `new_data_path` returns."""
    name = path.removeprefix(directory)
    return path.startswith(directory) and _DATA_NAME.fullmatch(name) is not None


class ColumnStatistics(NamedTuple):
    """Of a column that is not nested; the bounds are None if they are unknown or all values are null."""

    lowest: Any
    highest: Any
    nulls_count: int


class DataFile(NamedTuple):
    """A Parquet file that can be committed."""

    path: str  #: below the location of the table
    size_bytes: int
    rows_count: int
    statistics: Mapping[str, ColumnStatistics]


class DataFileWriter:
    """Writes rows of one schema to files of limited size."""

    def __init__(
        self, store: ObjectStore, schema: pa.Schema, new_path: Callable[[], str], file_bytes_max: int
    ) -> None:
        """:param new_path: Returns another path for each file.
        :param file_bytes_max: A file is completed when it is at least as large.
        """
        self._schema = schema
        self._store = store
        self._new_path = new_path
        self._file_bytes_max = file_bytes_max
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._file: _OpenFile | None = None
        self._files: list[DataFile] = []

    def write(self, rows: pa.RecordBatch) -> None:
        self._pending.append(rows)
        self._pending_bytes += rows.nbytes
        if self._pending_bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> list[DataFile]:
        """Complete the last file; return all files, in the order of their rows."""
        self._flush()
        if self._file is not None:
            self._files.append(self._file.close())
            self._file = None
        return self._files

    def discard(self) -> None:
        """Give up: close and delete what was written."""
        self._pending = []
        if self._file is not None:
            self._file.discard()
        self._store.delete(file.path for file in self._files)

    def _flush(self) -> None:
        if not self._pending:
            return
        rows = pa.Table.from_batches(self._pending).cast(self._schema)
        self._pending, self._pending_bytes = [], 0
        self._file = self._file or _OpenFile(self._store, self._new_path(), self._schema)
        self._file.write(rows)
        if self._file.size_bytes >= self._file_bytes_max:
            self._files.append(self._file.close())
            self._file = None


class _OpenFile:
    """A Parquet file that is being written, first to a temporary file: its rows come in steps, and may be discarded."""

    def __init__(self, store: ObjectStore, path: str, schema: pa.Schema) -> None:
        self._path = path
        self._store = store
        self._footers: list[pq.FileMetaData] = []
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - `close` and `discard` close it
        self._writer = pq.ParquetWriter(
            self._output, schema, compression="zstd", metadata_collector=self._footers
        )
        self._rows_count = 0

    @property
    def size_bytes(self) -> int:
        """The bytes that were written so far."""
        return self._output.tell()

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=len(rows))
        self._rows_count += len(rows)

    def discard(self) -> None:
        self._writer.close()
        self._output.close()

    def close(self) -> DataFile:
        self._writer.close()
        with self._output as output:
            output.seek(0)
            size_bytes = self._store.write(self._path, iter(lambda: output.read(_COPY_BYTES), b""))
        return DataFile(self._path, size_bytes, self._rows_count, _statistics(self._footers[-1]))


def _statistics(footer: pq.FileMetaData) -> dict[str, ColumnStatistics]:
    by_name: dict[str, list[ColumnStatistics]] = {}
    for group in (footer.row_group(index) for index in range(footer.num_row_groups)):
        for column in (group.column(index) for index in range(footer.num_columns)):
            if "." not in column.path_in_schema and column.is_stats_set:
                statistics = column.statistics
                part = ColumnStatistics(*_bounds(statistics), statistics.null_count or 0)
                by_name.setdefault(column.path_in_schema, []).append(part)
    return {name: _combined(parts) for name, parts in by_name.items() if len(parts) == footer.num_row_groups}


def _bounds(statistics: pq.Statistics) -> tuple[Any, Any]:
    try:
        return (statistics.min, statistics.max) if statistics.has_min_max else (None, None)
    except (ValueError, OverflowError):  # a time that Python cannot represent
        return None, None


def _combined(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
    """Return the statistics of all row groups; a group without bounds has only nulls, or none that are known."""
    nulls_count = sum(part.nulls_count for part in parts)
    bounds = [(part.lowest, part.highest) for part in parts]
    is_known = all(low is not None and _is_short(low) and _is_short(high) for low, high in bounds)
    if not is_known:
        return ColumnStatistics(None, None, nulls_count)
    lowest, highest = min(low for low, _ in bounds), max(high for _, high in bounds)
    return ColumnStatistics(lowest, highest, nulls_count)


def _is_short(value: object) -> bool:
    return not isinstance(value, str | bytes) or len(value) <= _STATISTICS_CHARS_MAX
