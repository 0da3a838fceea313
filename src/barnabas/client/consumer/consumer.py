"""A consumer of assigned partitions, as an async iterator of records."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec, find_offsets
from barnabas.client.consumer.completed_fetch import ConsumedRecord, read_fetched
from barnabas.client.consumer.fetch_messages import FetchLimits
from barnabas.client.consumer.fetching import fetch
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import check, is_retriable_elsewhere
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.messages.fetch import PartitionData

_LANE = "fetch"

#: Start of a partition: an offset, or its meaning.
Start = int | OffsetSpec


@dataclass
class FetchPosition:
    """The position in a partition; `end` is the offset before which to stop, if any."""

    tp: TopicPartition
    offset: int
    end: int | None = None
    high_watermark: int = -1  #: from the leader's last response

    @property
    def finished(self) -> bool:
        """Whether everything up to `end` has been read."""
        return self.end is not None and self.offset >= self.end


class _Answer(NamedTuple):
    """A leader's response, with the offsets of the request."""

    asked: Mapping[TopicPartition, int]
    data: Mapping[TopicPartition, PartitionData]


class _OutOfRange(KafkaError):
    """A position is outside its log."""

    def __init__(self, position: FetchPosition) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {position.offset} of {position.tp}")
        self.position = position


class Consumer:
    """Consumes from a cluster; an async context manager and iterator.

    Call `assign` first. A partition whose offset is outside its log raises OFFSET_OUT_OF_RANGE, or continues from
    `out_of_range` if that is given.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        limits: FetchLimits | None = None,
        out_of_range: OffsetSpec | None = None,
    ) -> None:
        self.cluster = cluster
        self.positions: dict[TopicPartition, FetchPosition] = {}
        self._isolation = isolation
        self._limits = limits or FetchLimits()
        self._out_of_range = out_of_range
        self._fetches: dict[int, asyncio.Task[_Answer]] = {}  # node id -> its long poll
        self._failure: Exception | None = None  #: of the last responses, to be handled by the next round
        self._failures = 0
        self._failing_since_ms = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        """Iterate over records; ends when all partitions have been read to their `end`."""
        while not self.finished:
            for record in await self.poll():
                yield record

    @property
    def finished(self) -> bool:
        """Whether every assigned partition has been read to its end."""
        return all(position.finished for position in self.positions.values())

    async def assign(self, starts: Mapping[TopicPartition, Start], *, stop_at_end: bool = False) -> None:
        """Assign these partitions; with `stop_at_end`, read up to their present ends.

        A time after the last record means the end.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION and others, for the first partition that fails.
        """
        await self._stop_fetches()
        self._failure = None
        specs = {tp: start for tp, start in starts.items() if isinstance(start, OffsetSpec)}
        offsets = {tp: start for tp, start in starts.items() if isinstance(start, int)}
        offsets |= await self._offsets(specs)
        beyond = [tp for tp, offset in offsets.items() if offset < 0]
        ends = await self._offsets(dict.fromkeys(starts if stop_at_end else beyond, LATEST))
        for tp in beyond:
            offsets[tp] = ends[tp]
        self.positions = {
            tp: FetchPosition(tp, offsets[tp], ends[tp] if stop_at_end else None) for tp in starts
        }

    async def poll(self, timeout_ms: int | None = None) -> list[ConsumedRecord]:
        """Return the next records, at least one unless everything is read or `timeout_ms` has passed.

        :raises KafkaError: OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, or a permanent error of a broker.
        :raises BrokerConnectionError: If a leader was not reached for as long as the cluster retries.
        """
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_s):
                while not self.finished:
                    records = await self._round()
                    if records:
                        return records
        except TimeoutError:
            pass
        return []

    async def close(self) -> None:
        await self._stop_fetches()

    async def _round(self) -> list[ConsumedRecord]:
        """Wait for one leader's response, or for a pause after a failure.

        Records are returned before a failure that came with them is handled, so that they are not lost.
        """
        try:
            await self._handle_failure()
            await self._start_fetches()
            records, failures = self._take(await self._answers())
        except (KafkaError, ConnectionError) as error:
            await self._recover(error)
            return []
        self._failure = min(failures, key=_may_pass, default=None)  # lasting ones first
        if records or not failures:
            self._failures = 0
        return records

    async def _start_fetches(self) -> None:
        """Send a fetch to every leader that has none in flight."""
        by_leader: defaultdict[int, dict[TopicPartition, int]] = defaultdict(dict)
        failure: KafkaError | None = None
        for position in self.positions.values():
            if not position.finished:
                try:
                    leader = await self.cluster.leader(position.tp)
                except KafkaError as error:
                    failure = error
                else:
                    by_leader[leader][position.tp] = position.offset
        for leader, positions in by_leader.items():
            if leader not in self._fetches:
                self._fetches[leader] = asyncio.ensure_future(self._fetch(leader, positions))
        if failure is not None and not (self._fetches and _may_pass(failure)):
            raise failure

    async def _answers(self) -> list[asyncio.Task[_Answer]]:
        done, _ = await asyncio.wait(self._fetches.values(), return_when=asyncio.FIRST_COMPLETED)
        self._fetches = {node: task for node, task in self._fetches.items() if task not in done}
        return list(done)

    async def _fetch(self, leader: int, positions: Mapping[TopicPartition, int]) -> _Answer:
        timeout_ms = self._limits.max_wait_ms + self.cluster.request_timeout_ms
        data = await fetch(
            self.cluster, leader, positions, self._limits, self._isolation, lane=_LANE, timeout_ms=timeout_ms
        )
        return _Answer(positions, data)

    def _take(
        self, responses: Iterable[asyncio.Task[_Answer]]
    ) -> tuple[list[ConsumedRecord], list[Exception]]:
        """Return the records and failures of finished fetches, and move the positions behind the records, which must
        not be lost after that.
        """
        records: list[ConsumedRecord] = []
        failures: list[Exception] = []
        for task in responses:
            try:
                positions, data = task.result()
            except (KafkaError, ConnectionError) as error:
                failures.append(error)
                continue
            for tp, answered in data.items():
                position = self.positions.get(tp)
                if position is None or position.offset != positions.get(tp):
                    continue  # unassigned since the fetch was sent
                try:
                    records += self._advance(position, answered)
                except KafkaError as error:
                    failures.append(error)
        return records, failures

    def _advance(self, position: FetchPosition, data: PartitionData) -> list[ConsumedRecord]:
        code = data.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise _OutOfRange(position)
        check(code, f"fetch from offset {position.offset} of partition {position.tp}")
        position.high_watermark = data.high_watermark
        records, position.offset = read_fetched(position.tp, data, position.offset, self._isolation)
        return (
            records
            if position.end is None
            else [record for record in records if record.offset < position.end]
        )

    async def _handle_failure(self) -> None:
        """Raise the last failure, unless it is an offset out of range from which the consumer can recover."""
        failure, self._failure = self._failure, None
        if failure is None:
            return
        if not isinstance(failure, _OutOfRange):
            raise failure
        position, tp = failure.position, failure.position.tp
        if self._out_of_range is not None:
            position.offset = (await self._offsets({tp: self._out_of_range}))[tp]
            return
        first, last = [(await self._offsets({tp: spec}))[tp] for spec in (EARLIEST, LATEST)]
        message = f"offset {position.offset} is outside partition {tp}, which has offsets {first} to {last}"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)

    async def _offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        return await find_offsets(self.cluster, specs, self._isolation)

    async def _recover(self, error: Exception) -> None:
        """Wait before the next round and refresh metadata; raise the failure when it has lasted too long."""
        retry = self.cluster.retry
        now_ms = retry.clock.monotonic_ms()
        self._failing_since_ms = self._failing_since_ms if self._failures else now_ms
        if not _may_pass(error) or now_ms - self._failing_since_ms > retry.timeout_ms:
            raise error
        self._failures += 1
        self.cluster.invalidate()
        await retry.pause(self._failures)

    async def _stop_fetches(self) -> None:
        tasks: Iterable[asyncio.Task[_Answer]] = list(self._fetches.values())
        self._fetches.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _may_pass(error: Exception) -> bool:
    # A damaged batch stays damaged for a consumer, although CORRUPT_MESSAGE is retriable for producers.
    corrupt = isinstance(error, KafkaError) and error.code is ErrorCode.CORRUPT_MESSAGE
    return is_retriable_elsewhere(error) and not corrupt
