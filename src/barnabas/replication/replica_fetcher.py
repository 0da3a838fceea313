"""Copies the partitions that this broker follows from one leader."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicIdPartition
from barnabas.client.core.errors import BrokerConnectionError
from barnabas.log.partition_log import PartitionLog
from barnabas.replication.broker_client import BrokerClient
from barnabas.replication.fetch_sessions import INITIAL_EPOCH, INVALID_SESSION_ID, next_epoch
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import NO_EPOCH, Partition
from barnabas.replication.throttle import ReplicationThrottle
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.records.batch import BatchHeader, read_header

EARLIEST_TIMESTAMP = -2

#: First pause of a partition whose leader may not know yet that it leads; the next ones are longer.
LEADER_PAUSE_MS = 20

#: The leader may not have learned yet of the election that this broker knows.
_NOT_LEADING_YET = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH})

#: How long to append before other clients are served.
TURN_MS = 2

#: How long the next fetch waits for flushes; the partitions of those that take longer are left out of it.
FLUSH_WAIT_MS = 100

_log = get_logger("barnabas.replication")


class FetchSettings(NamedTuple):
    """Limits of fetches, from the configuration (replica.fetch.*)."""

    max_wait_ms: int
    partition_bytes: int
    response_bytes: int
    backoff_ms: int


class _Position(NamedTuple):
    """The position in a partition as the leader knows it."""

    fetch_offset: int
    log_start_offset: int
    leader_epoch: int
    last_fetched_epoch: int


class ReplicaFetcher:
    """One task and one connection. Within its fetch session it names only the partitions whose position has changed."""

    def __init__(
        self,
        broker_id: int,
        leader_id: int,
        client: BrokerClient,
        clock: Clock,
        settings: Callable[[], FetchSettings],
        throttle: ReplicationThrottle,
        flusher: Flusher,
        broker_epoch: Callable[[], int],
        on_truncated: Callable[[PartitionLog, list[Path]], None],
    ) -> None:
        """:param on_truncated: Called with the files of truncated segments, which are to be removed."""
        self._broker_id = broker_id
        self._leader_id = leader_id
        self._client = client
        self._clock = clock
        self._settings = settings
        self._throttle = throttle
        self._flusher = flusher
        self._broker_epoch = broker_epoch
        self._on_truncated = on_truncated
        self._partitions: dict[TopicIdPartition, Partition] = {}
        self._sent: dict[TopicIdPartition, _Position] = {}  #: within the session
        self._changed: dict[
            TopicIdPartition, None
        ] = {}  #: partitions whose position the leader does not know
        self._paused: dict[TopicIdPartition, int] = {}  #: until a monotonic time in ms
        self._pauses_ms: dict[TopicIdPartition, int] = {}  #: the last pause, if no fetch has succeeded since
        self._flushes: dict[TopicIdPartition, asyncio.Future[None]] = {}  #: that are not complete
        self._session_id, self._session_epoch = INVALID_SESSION_ID, INITIAL_EPOCH
        self._session_broker_epoch = broker_epoch()
        self._woken = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self.fetches_count = 0
        self.fetched_bytes = 0
        self.truncations_count = 0

    @property
    def is_idle(self) -> bool:
        """Whether there is no partition to copy."""
        return not self._partitions

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(
            self._run(), name=f"replica-fetcher-{self._leader_id}"
        )

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def add(self, partition: Partition) -> None:
        """Copy a partition from now on, or start again if its leader epoch has changed."""
        key = TopicIdPartition(partition.topic_id, partition.index)
        self._remove_gap(partition)
        self._partitions[key] = partition
        self._end_pauses(key)
        self._changed[key] = None
        self._woken.set()

    def _remove_gap(self, partition: Partition) -> None:
        """Copy again what this log may lack in its midst after a power failure."""
        log = partition.log
        if log.gap_offset is not None:
            try:
                self._on_truncated(log, log.truncate_to(log.gap_offset))
            except KafkaError as error:
                _log.error("cannot truncate a log", partition=str(log.topic_partition), why=error.message)
            log.gap_offset = None

    def remove(self, key: TopicIdPartition) -> None:
        if self._partitions.pop(key, None) is not None:
            self._end_pauses(key)
            self._changed[key] = None

    def _end_pauses(self, key: TopicIdPartition) -> None:
        self._paused.pop(key, None)
        self._pauses_ms.pop(key, None)

    async def _run(self) -> None:
        while True:
            try:
                if await self._wait_for_partitions():
                    await self._fetch()
                continue
            except (BrokerConnectionError, KafkaError) as error:
                _log.warning("cannot fetch from a leader", leader=self._leader_id, why=str(error))
            except Exception:  # the next attempt may succeed
                _log.exception("cannot copy from a leader", leader=self._leader_id)
            self._begin_session()
            await asyncio.sleep(self._settings().backoff_ms / 1000)

    async def _wait_for_partitions(self) -> bool:
        """Return whether there are partitions to fetch now; wait for some otherwise."""
        self._resume_paused()
        if any(key not in self._paused and key not in self._flushes for key in self._partitions):
            return True
        self._woken.clear()
        timeout_s = self._until_resumed_ms() / 1000 if self._paused else None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), timeout_s)
        return False

    def _resume_paused(self) -> None:
        if self._paused:
            now_ms = self._clock.monotonic_ms()
            for key in [key for key, until_ms in self._paused.items() if until_ms <= now_ms]:
                del self._paused[key]
                self._changed[key] = None

    def _until_resumed_ms(self) -> int:
        """Return how long the first of the paused partitions is to be left out."""
        return max(0, min(self._paused.values()) - self._clock.monotonic_ms())

    def _begin_session(self) -> None:
        """Name all partitions in the next fetch."""
        self._session_id, self._session_epoch = INVALID_SESSION_ID, INITIAL_EPOCH
        self._session_broker_epoch = self._broker_epoch()
        self._sent.clear()
        self._changed = dict.fromkeys(self._partitions)

    async def _fetch(self) -> None:
        if self._session_broker_epoch != self._broker_epoch():
            self._begin_session()  # the leader accepts nothing that it was sent in an earlier broker epoch
        request = self._request()
        self.fetches_count += 1
        response: FetchResponse = await self._client.send(self._leader_id, request)
        if response.error_code:
            raise KafkaError(ErrorCode.of(response.error_code))
        self._session_id = response.session_id
        self._session_epoch = next_epoch(self._session_epoch)
        await self._append_all(response)

    def _request(self) -> FetchRequest:
        settings = self._settings()
        named: dict[bytes, list[FetchPartition]] = {}
        forgotten: dict[bytes, list[int]] = {}
        for key in self._changed:
            topic_id, index = key
            partition = self._partitions.get(key)
            if partition is None or self._must_wait(key, partition):
                self._sent.pop(key, None)
                forgotten.setdefault(topic_id, []).append(index)
                continue
            if key in self._paused:
                continue  # it is named when the pause is over
            log = partition.log
            epoch = NO_EPOCH if log.latest_epoch is None else log.latest_epoch
            position = _Position(log.log_end_offset, log.log_start_offset, partition.leader_epoch, epoch)
            if self._sent.get(key) == position:
                continue
            self._sent[key] = position
            named.setdefault(topic_id, []).append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.fetch_offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=settings.partition_bytes,
                )
            )
        self._changed.clear()
        return FetchRequest(
            replica_state=ReplicaState(self._broker_id, self._broker_epoch()),
            max_wait_ms=self._max_wait_ms(settings),
            min_bytes=1,
            max_bytes=settings.response_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=those) for topic_id, those in named.items()],
            forgotten_topics_data=[
                ForgottenTopic(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in forgotten.items()
            ],
        )

    def _max_wait_ms(self, settings: FetchSettings) -> int:
        """Return how long the leader may wait for records: not longer than a partition is left out."""
        wait_ms = settings.max_wait_ms
        if self._paused:
            wait_ms = min(wait_ms, self._until_resumed_ms())
        return min(wait_ms, FLUSH_WAIT_MS) if self._flushes else wait_ms

    async def _append_all(self, response: FetchResponse) -> None:
        started_ms = self._clock.monotonic_ms()
        for topic in response.responses:
            for data in topic.partitions:
                await self._apply(TopicIdPartition(topic.topic_id, data.partition_index), data)
                if self._clock.monotonic_ms() - started_ms >= TURN_MS:
                    await asyncio.sleep(0)
                    started_ms = self._clock.monotonic_ms()
        flushes = [self._begin_flush(key) for key in self._changed if self._needs_flush(key)]
        if flushes:
            await asyncio.wait(flushes, timeout=FLUSH_WAIT_MS / 1000)

    async def _apply(self, key: TopicIdPartition, data: PartitionData) -> None:
        """Apply the leader's answer for one partition, unless its leader has changed meanwhile."""
        partition, sent = self._partitions.get(key), self._sent.get(key)
        if partition is None or sent is None or not self._follows(partition, sent.leader_epoch):
            return
        if partition.log.log_end_offset != sent.fetch_offset:
            self._changed[key] = None  # the log was replaced or truncated meanwhile
            return
        try:
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._start_within_leader(partition, sent.leader_epoch)
            elif data.error_code:
                self._pause(key, ErrorCode.of(data.error_code))
                return
            elif data.diverging_epoch.end_offset >= 0:
                self._truncate(partition, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            else:
                self._append(partition, data)
        except KafkaError as error:
            _log.warning(
                "cannot copy a partition",
                partition=f"{partition.topic}-{partition.index}",
                leader=self._leader_id,
                why=error.message,
            )
            self._pause(key, error.code)
            return
        except BrokerConnectionError:
            raise
        except Exception:  # the others in this response must not wait for this one
            _log.exception(
                "cannot copy a partition",
                partition=f"{partition.topic}-{partition.index}",
                leader=self._leader_id,
            )
            self._pause(key, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._pauses_ms.pop(key, None)
        self._changed[key] = None

    def _follows(self, partition: Partition, leader_epoch: int) -> bool:
        """Whether the partition still has this leader in this epoch; else its log must not be changed from here."""
        return partition.leader == self._leader_id and partition.leader_epoch == leader_epoch

    def _append(self, partition: Partition, data: PartitionData) -> None:
        if data.records:
            records = memoryview(data.records)
            self._begin_with_batch(partition.log, read_header(records))
            appended = partition.log.append_copied(records)
            self._throttle.record(partition, appended.size_bytes)
            self.fetched_bytes += appended.size_bytes
        partition.follow_leader(data.high_watermark, data.log_start_offset)

    def _begin_with_batch(self, log: PartitionLog, first: BatchHeader) -> None:
        """Begin an empty log with the leader's first batch, in which the log start offset may be (DeleteRecords)."""
        is_empty = log.log_start_offset == log.log_end_offset
        if is_empty and first.base_offset < log.log_end_offset <= first.last_offset:
            self._on_truncated(log, log.truncate_fully_and_start_at(first.base_offset))

    def _truncate(self, partition: Partition, epoch: int, end_offset: int) -> None:
        """Truncate to the end of the largest epoch that both logs have (KIP-101)."""
        log = partition.log
        own_epoch, own_end_offset = log.end_offset_for_epoch(epoch)
        offset = min(end_offset, own_end_offset) if own_epoch >= 0 else log.log_start_offset
        _log.info(
            "truncating a partition to the end of an epoch of its leader",
            partition=f"{partition.topic}-{partition.index}",
            offset=offset,
            log_end_offset=log.log_end_offset,
            epoch=epoch,
        )
        self.truncations_count += 1
        self._on_truncated(log, log.truncate_to(offset))

    async def _start_within_leader(self, partition: Partition, leader_epoch: int) -> None:
        """Continue at the leader's log end or log start, because the leader does not have the position."""
        start_offset = await self._leader_start_offset(partition)
        end_offset = await self._leader_end_offset(partition)
        if not self._follows(partition, leader_epoch):
            return
        log = partition.log
        self.truncations_count += 1
        if end_offset < log.log_end_offset:
            removed = log.truncate_to(end_offset)
        else:
            removed = log.truncate_fully_and_start_at(max(start_offset, log.log_start_offset))
        self._on_truncated(log, removed)

    async def _leader_start_offset(self, partition: Partition) -> int:
        asked = ListOffsetsPartition(partition.index, partition.leader_epoch, EARLIEST_TIMESTAMP)
        request = ListOffsetsRequest(
            replica_id=self._broker_id, topics=[ListOffsetsTopic(partition.topic, [asked])]
        )
        response: ListOffsetsResponse = await self._client.send(self._leader_id, request)
        [[result]] = [topic.partitions for topic in response.topics]
        if result.error_code:
            raise KafkaError(ErrorCode.of(result.error_code))
        return result.offset

    async def _leader_end_offset(self, partition: Partition) -> int:
        """Return the log end offset: the end of the present epoch. ListOffsets would return the high watermark."""
        epoch = partition.leader_epoch
        asked = OffsetForLeaderPartition(partition.index, epoch, epoch)
        request = OffsetForLeaderEpochRequest(
            replica_id=self._broker_id, topics=[OffsetForLeaderTopic(partition.topic, [asked])]
        )
        response: OffsetForLeaderEpochResponse = await self._client.send(self._leader_id, request)
        [[result]] = [topic.partitions for topic in response.topics]
        if result.error_code:
            raise KafkaError(ErrorCode.of(result.error_code))
        if result.end_offset < 0:
            message = f"The leader {self._leader_id} does not know the end of its epoch {epoch}."
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, message)
        return result.end_offset

    def _must_wait(self, key: TopicIdPartition, partition: Partition) -> bool:
        """Whether a partition is left out of the session for now."""
        if partition.log.failure is not None:
            self._pause(key, ErrorCode.KAFKA_STORAGE_ERROR)
            return True
        if key in self._flushes or self._needs_flush(key):
            self._begin_flush(key)
            return True
        return self._delay_if_throttled(key, partition)

    def _needs_flush(self, key: TopicIdPartition) -> bool:
        """Whether the log must be flushed (flush.messages) before the leader learns of its end."""
        partition = self._partitions.get(key)
        return partition is not None and partition.log.failure is None and partition.log.needs_flush

    def _begin_flush(self, key: TopicIdPartition) -> "asyncio.Future[None]":
        """Flush a log, unless that has begun; an error takes it offline."""
        flush = self._flushes.get(key)
        if flush is None:
            flush = self._flushes[key] = self._flusher.when_flushed(self._partitions[key].log)
            flush.add_done_callback(lambda done: self._on_flushed(key, done))
        return flush

    def _on_flushed(self, key: TopicIdPartition, flush: "asyncio.Future[None]") -> None:
        if not flush.cancelled():
            flush.exception()  # retrieved: the log is offline, which `_must_wait` sees
        del self._flushes[key]
        self._changed[key] = None
        self._woken.set()

    def _delay_if_throttled(self, key: TopicIdPartition, partition: Partition) -> bool:
        """Leave a partition out of the session for a while if it has copied too much; return whether it has."""
        delay_ms = self._throttle.delay_ms(partition, self._broker_id)
        if delay_ms and key not in self._paused:
            self._paused[key] = self._clock.monotonic_ms() + delay_ms
        return bool(delay_ms)

    def _pause(self, key: TopicIdPartition, code: ErrorCode) -> None:
        """Leave a partition out of the next fetches, and name it again later.

        Soon if the leader may learn of its election in a moment: until then nothing that it appends is acknowledged.
        """
        pause_ms = self._settings().backoff_ms
        if code in _NOT_LEADING_YET:
            pause_ms = min(pause_ms, 2 * self._pauses_ms.get(key, LEADER_PAUSE_MS // 2))
        self._pauses_ms[key] = pause_ms
        self._paused[key] = self._clock.monotonic_ms() + pause_ms
        self._sent.pop(key, None)
        _log.debug("pausing a partition", partition=f"{key[0].hex()}-{key[1]}", code=code.name)

    def statistics(self) -> dict[str, int]:
        return {
            "partitions_count": len(self._partitions),
            "paused_count": len(self._paused),
            "flushes_count": len(self._flushes),
            "fetches_count": self.fetches_count,
            "fetched_bytes": self.fetched_bytes,
            "truncations_count": self.truncations_count,
        }
