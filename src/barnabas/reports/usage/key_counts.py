"""The most frequent keys of a partition, in limited memory."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Bytes of distinct keys with their counts that are kept; beyond that, the rarer half is dropped.
KEPT_BYTES_MAX = 32 * 1024 * 1024
#: Rows that are collected before they are merged.
WAITING_ROWS_MAX = 500_000
_WAITING_BYTES_MAX = 16 * 1024 * 1024
#: Keys that are counted again, if keys were dropped.
_CANDIDATES_MAX = 10_000

_SCHEMA = pa.schema([("key", pa.binary()), ("count", pa.int64())])
_ORDER = [("count", "descending"), ("key", "ascending")]


class KeyCounts:
    """Counts of keys. Once keys were dropped, a count may be too low, by at most `missed_max`."""

    def __init__(
        self, kept_bytes_max: int = KEPT_BYTES_MAX, waiting_rows_max: int = WAITING_ROWS_MAX
    ) -> None:
        self.missed_max = 0
        self._kept_bytes_max = kept_bytes_max
        self._waiting_rows_max = waiting_rows_max
        self._kept = _SCHEMA.empty_table()
        self._waiting: list[pa.Table] = []

    def add(self, keys: pa.Array) -> None:
        """Count keys; null is none."""
        counted = keys.drop_null().value_counts()
        self._waiting.append(pa.table([counted.field("values"), counted.field("counts")], schema=_SCHEMA))
        rows_count = sum(table.num_rows for table in self._waiting)
        size_bytes = sum(table.nbytes for table in self._waiting)
        if rows_count > max(self._waiting_rows_max, self._kept.num_rows) or size_bytes > _WAITING_BYTES_MAX:
            self._merge()

    def top(self, keys_count: int) -> list[tuple[bytes, int]]:
        """Return the keys with the highest counts, equal ones in the order of their bytes."""
        self._merge()
        if not self._kept.num_rows:
            return []
        counts = self._kept["count"].to_numpy()
        least = np.partition(counts, -keys_count)[-keys_count] if len(counts) > keys_count else 0
        likely = self._kept.filter(pc.greater_equal(self._kept["count"], int(least)))
        rows = likely.sort_by(_ORDER).slice(0, keys_count).to_pylist()
        return [(row["key"], row["count"]) for row in rows]

    def candidates(self, keys_count: int) -> pa.Array:
        """Return the keys that may be among the most frequent ones, however many of theirs were missed."""
        top = self.top(keys_count)
        least = top[-1][1] if len(top) == keys_count else 0
        likely = self._kept.filter(pc.greater_equal(self._kept["count"], least - self.missed_max))
        return likely.sort_by(_ORDER).slice(0, _CANDIDATES_MAX)["key"].combine_chunks()

    def _merge(self) -> None:
        if self._waiting:
            together = pa.concat_tables([self._kept, *self._waiting])
            summed = together.group_by("key", use_threads=False).aggregate([("count", "sum")])
            self._kept = summed.rename_columns({"count_sum": "count"}).select(_SCHEMA.names)
            self._waiting = []
        while self._kept.nbytes > self._kept_bytes_max:
            counts = self._kept["count"].to_numpy()
            limit = int(np.median(counts))
            self._kept = self._kept.filter(pc.greater(self._kept["count"], limit)).combine_chunks()
            self.missed_max += limit


def count_only(keys: pa.Array, candidates: pa.Array) -> pa.Array:
    """Return the keys that are candidates."""
    return keys.filter(pc.is_in(keys, value_set=candidates))
