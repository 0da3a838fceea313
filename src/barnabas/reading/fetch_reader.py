"""Reads a range of offsets over the wire with few large Fetch requests, and fetches ahead while decoding."""

import math
from collections.abc import Iterator
from concurrent.futures import Future
from typing import NamedTuple

import uvloop

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, find_offsets
from barnabas.client.consumer.fetch_messages import FetchLimits
from barnabas.client.consumer.fetching import fetch
from barnabas.client.core.errors import check
from barnabas.client.core.frame_protocol import FrameMemory
from barnabas.client.core.loop_thread import LoopThread
from barnabas.reading.connection import new_cluster
from barnabas.reading.data_loss import DataLossPolicy
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.options import ReadOptions
from barnabas.reading.range_reader import RawBatches, TopicGone
from barnabas.reading.rows import NONE_ABORTED, AbortedRanges
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.fetch import PartitionData

_LANE = "fetch"
#: Shared by all tasks of a Python worker, so that each reuses memory.
_MEMORY = FrameMemory()
_MAX_WAIT_MS = 500
#: The extra bytes to fetch: the last batch extends beyond the range, and sizes are estimates.
_SURPLUS_SHARE = 1 / 8
_SURPLUS_BYTES = 64 * 1024
#: How often a topic is reported missing before it counts as deleted.
_UNKNOWN_ATTEMPTS_COUNT = 8
#: Errors for a topic that does not exist, or is not the requested one any more.
_NOT_THIS_TOPIC = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class _Fetched(NamedTuple):
    """The result of one Fetch: batches up to `next_offset`; `lost` describes what is missing before them."""

    raw: RawBatches | None
    next_offset: int
    lost: str | None = None


class FetchReader:
    """A `RangeReader` over the wire."""

    def __init__(self, options: ReadOptions) -> None:
        self._isolation = options.isolation
        self._losses = DataLossPolicy(fail=options.fail_on_data_loss, option=options.loss_option)
        self._fetch_bytes = options.fetch_bytes
        self._cluster = new_cluster(options.connection, options.connection.retry_timeout_ms, _MEMORY)
        self._loop = LoopThread("barnabas-fetch", uvloop.new_event_loop())

    def read(
        self, offset_range: OffsetRange, topic_id: bytes, record_bytes: float = math.inf
    ) -> Iterator[RawBatches]:
        next_fetch = self._begin(offset_range, topic_id, record_bytes)
        try:
            while True:
                fetched = next_fetch.result()
                if fetched.lost is not None:
                    self._losses.report(fetched.lost)
                if fetched.raw is not None:
                    record_bytes = len(fetched.raw.batches) / (fetched.next_offset - offset_range.low)
                offset_range = offset_range._replace(low=fetched.next_offset)
                if offset_range.offsets_count > 0:
                    next_fetch = self._begin(offset_range, topic_id, record_bytes)
                if fetched.raw is not None:
                    yield fetched.raw
                if offset_range.offsets_count <= 0:
                    return
        finally:
            next_fetch.cancel()

    def _begin(self, offset_range: OffsetRange, topic_id: bytes, record_bytes: float) -> "Future[_Fetched]":
        size_bytes = fetch_bytes_for(offset_range.offsets_count, record_bytes, self._fetch_bytes)
        limits = FetchLimits(_MAX_WAIT_MS, 1, size_bytes, size_bytes)
        return self._loop.start(self._next(offset_range, topic_id, limits))

    def close(self) -> None:
        self._loop.run(self._cluster.close())
        self._loop.stop()

    async def _next(self, offset_range: OffsetRange, topic_id: bytes, limits: FetchLimits) -> _Fetched:
        """Return the first batches of a range, retried until they arrive or are known to be gone."""
        not_found_count = 0

        async def attempt() -> _Fetched:
            nonlocal not_found_count
            try:
                return await self._fetch(offset_range, topic_id, limits)
            except KafkaError as error:
                if error.code in _NOT_THIS_TOPIC:
                    not_found_count += 1
                    if not_found_count >= _UNKNOWN_ATTEMPTS_COUNT:
                        raise TopicGone from error
                raise

        try:
            return await self._cluster.retrying(attempt)
        except TopicGone:
            tp, low, high = offset_range
            what = f"topic '{tp.topic}' was deleted: offsets {low} to {high} of partition {tp} are gone"
            return _Fetched(None, high, what)

    async def _fetch(self, offset_range: OffsetRange, topic_id: bytes, limits: FetchLimits) -> _Fetched:
        tp, position, high = offset_range
        leader = await self._cluster.leader(tp)
        known_id = self._cluster.metadata.topic(tp.topic).topic_id
        if ZERO_UUID not in (topic_id, known_id) and known_id != topic_id:
            raise TopicGone
        fetched = await fetch(self._cluster, leader, {tp: position}, limits, self._isolation, lane=_LANE)
        data = fetched[tp]
        if data.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
            check(data.error_code, f"fetch from offset {position} of partition {tp}")
            from barnabas.wire.records import batches_numba  # importing numba takes most of a second

            last = batches_numba.read_last_header(data.records or b"")
            if last is not None and last.next_offset > position:
                return _Fetched(self._raw(data, position), last.next_offset)
        return await self._without_batches(tp, position, high)

    def _raw(self, data: PartitionData, position: int) -> RawBatches:
        batches, aborted = data.records or b"", NONE_ABORTED
        if self._isolation is Isolation.READ_COMMITTED and data.aborted_transactions:
            transactions = [
                (transaction.producer_id, transaction.first_offset)
                for transaction in data.aborted_transactions
            ]
            aborted = AbortedRanges.fetched(batches, transactions)
        return RawBatches(batches, position, aborted)

    async def _without_batches(self, tp: TopicPartition, position: int, high: int) -> _Fetched:
        """Return the loss when a broker returns no batches.

        :raises KafkaError: OFFSET_NOT_AVAILABLE when it should have returned some, so that the fetch is retried.
        """
        starts = await find_offsets(self._cluster, {tp: EARLIEST}, self._isolation)
        ends = await find_offsets(self._cluster, {tp: LATEST}, self._isolation)
        start, end = starts[tp], ends[tp]
        if position < start:
            next_offset = min(start, high)
            what = (
                f"partition {tp} begins at offset {start} now: offsets {position} to {next_offset} are gone"
            )
            return _Fetched(None, next_offset, what)
        if end < high:
            first = max(position, end)
            what = f"partition {tp} ends at offset {end} now: offsets {first} to {high} are gone"
            return _Fetched(None, high, what)
        message = f"the leader returned no records from offset {position} of partition {tp}, although it ends at {end}"
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, message)


def fetch_bytes_for(offsets_count: int, record_bytes: float, fetch_bytes: int) -> int:
    """Return the size limit of a Fetch: at most `fetch_bytes`, and little more than the estimated size of the
    offsets.
    """
    return int(min(fetch_bytes, offsets_count * record_bytes * (1 + _SURPLUS_SHARE) + _SURPLUS_BYTES))
