"""Reads committed records of topics, over connections that all tables of a thread share."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import pyarrow as pa

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST
from barnabas.reading.cluster_logs import ClusterLogs
from barnabas.reading.connection import ConnectionOptions
from barnabas.reading.fetch_reader import FetchReader
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.options import FETCH_BYTES, Edge, ReadOptions, Subscribe
from barnabas.reading.scan import read_ranged_records
from barnabas.tables.rows import RECORD_COLUMNS
from barnabas.wire.isolation import Isolation
from barnabas.wire.records.batches_numba import read_last_header

#: Rows that are decoded at a time, which bounds the memory for their objects.
_ROWS_MAX = 16 * 1024


class ReadableOffsets(NamedTuple):
    """The offsets of a partition that can be read now: start <= offset < end."""

    start: int
    end: int


class FetchedRecords(NamedTuple):
    """Records up to an offset."""

    batches: Iterator[pa.RecordBatch]  #: columns `RECORD_COLUMNS`; valid until the next fetch
    next_offset: int
    size_bytes: int


class TopicSource:
    """Reads topics of one cluster. For one thread."""

    def __init__(self, connection: ConnectionOptions, fetch_bytes: int = FETCH_BYTES) -> None:
        """:param fetch_bytes: Maximum size of a fetch."""
        self._options = ReadOptions(
            connection=connection,
            selection=Subscribe(()),
            starting=Edge.EARLIEST,
            ending=Edge.LATEST,
            isolation=Isolation.READ_COMMITTED,
            fetch_bytes=fetch_bytes,
            null_times=True,
        )
        self._logs = ClusterLogs(self._options)
        self._reader = FetchReader(self._options)

    def partitions(self, topic: str) -> dict[TopicPartition, bytes]:
        """Return the partitions of a topic with the topic's id.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED and others.
        """
        return self._logs.partitions(Subscribe((topic,)))

    def bounds(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ReadableOffsets]:
        """Return the bounds of logs; the end is the last stable offset."""
        starts = self._logs.offsets(dict.fromkeys(partitions, EARLIEST))
        ends = self._logs.offsets(dict.fromkeys(partitions, LATEST))
        return {tp: ReadableOffsets(starts[tp], ends[tp]) for tp in partitions}

    def fetch(self, offset_range: OffsetRange, topic_id: bytes) -> Iterator[FetchedRecords]:
        """Yield all committed records of a range, a few megabytes at a time.

        :raises DataLossError: Records were removed meanwhile.
        """
        for raw in self._reader.read(offset_range, topic_id):
            last = read_last_header(raw.batches)
            assert last is not None, "a fetch without batches is not returned"
            batches = (
                rows.slice(first, _ROWS_MAX)
                for rows in read_ranged_records(offset_range, raw, self._options, RECORD_COLUMNS)
                for first in range(0, rows.num_rows, _ROWS_MAX)
            )
            yield FetchedRecords(batches, min(last.next_offset, offset_range.high), len(raw.batches))

    def close(self) -> None:
        self._reader.close()
        self._logs.close()
