"""Publishes audit records from the metadata store to the audit topic: each event once, in order.

A record is stored by the same transaction as the change that it describes, and removed once its events are on disk in
the topic, and on all in-sync replicas. After an interruption, the publisher continues behind the last event in the
topic, if that event belongs to a record that is still stored. Events of other records, such as those of an earlier
store, do not count.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.api.context import BrokerContext
from barnabas.api.topics.topic_creator import create_internal_topic
from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.metadata.audit.events import AuditEvent, EventSequence, events_of
from barnabas.metadata.audit.records import AUDIT, AuditRecord
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.record_type import Table
from barnabas.metadata.topics import PARTITION_STATES
from barnabas.replication.acknowledgement import acknowledged
from barnabas.replication.partition import Partition
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.key_value_batch import encode_pairs
from barnabas.wire.records.record import decode_all

#: Maximum size of a batch, unless a single event is larger.
BATCH_BYTES_MAX = 256 << 10

#: Maximum size of what a batch and a record add to keys and values.
BATCH_OVERHEAD_BYTES = 64
RECORD_OVERHEAD_BYTES = 32

#: Published records are removed from the store in groups of this size, or after a while without new records.
REMOVED_COUNT = 500
REST_MS = 1000

#: How long the replicas are awaited before published records are removed.
REPLICATION_MS = 5000

#: How long a stop waits: the store may not answer, and what is not published now is published later.
STOP_S = 10.0

_NO_RECORDS: Table[AuditRecord] = Table()

#: Sorts before the first event.
_NOTHING = EventSequence(-1, -1)

_log = get_logger("barnabas.audit")


class AuditPublisher:
    """Publishes the audit records while this broker leads the only partition of the topic."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._leader_epoch: int | None = None  #: in which this broker publishes; None while it does not
        self._waiting: list[tuple[int, str, AuditRecord]] = []  #: (revision, row, record), ordered
        self._published: list[str] = []  #: published records that are still in the store
        self._last: EventSequence | None = None  #: None until the topic has been read
        self._woken = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._stopping = False
        self._last_failure = ""  #: reason why the last attempt failed
        self.events_count = 0

    def start(self) -> None:
        """Publish the records in the store, and new ones as they are written."""
        self._broker.metadata.listen(self._follow)
        self._woken.set()
        self._running = asyncio.get_running_loop().create_task(self._run(), name="audit")

    async def stop(self, *, abruptly: bool = False) -> None:
        """Publish what is left, if that is possible within `STOP_S`. If `abruptly`, leave it to the next start."""
        if self._running is None:
            return
        self._stopping = True
        self._woken.set()
        await asyncio.wait([self._running], timeout=0 if abruptly else STOP_S)
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def _follow(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        table = after.audit
        # Several commits arrive together if the metadata is loaded again.
        written = sorted((table.revision(row), row, table[row]) for row in changed.of(AUDIT) if row in table)
        if self._leader_epoch is not None:
            self._waiting += written
        if written or changed.of(PARTITION_STATES):  # this broker may lead the topic now
            self._woken.set()

    async def _run(self) -> None:
        while True:
            is_quiet = not await self._wait()
            try:
                await self.publish()
                if len(self._published) >= REMOVED_COUNT or is_quiet or self._stopping:
                    await self._remove()
                self._last_failure = ""
            except KafkaError as error:  # unpublished records stay in the store, and are published later
                self._log_failure(error.message)
            except OSError as error:  # the log directory failed and was reported as offline
                self._log_failure(str(error))
            except Exception:
                _log.exception("cannot publish audit records; they stay in the store")
            if self._stopping:
                return

    def _log_failure(self, reason: str) -> None:
        """Log the reason once."""
        if reason != self._last_failure:
            _log.error("cannot publish audit records; they stay in the store", why=reason)
        self._last_failure = reason

    async def _wait(self) -> bool:
        """Wait for a record, or for a while if some are to be removed; return whether there are records, or the
        publisher stops.
        """
        timeout_s = REST_MS / 1000 if self._published or self._waiting or self._last_failure else None
        try:
            await asyncio.wait_for(self._woken.wait(), timeout_s)
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    async def publish(self) -> None:
        """Append the events of all waiting records.

        :raises KafkaError: If they cannot be appended; they stay in the queue.
        """
        partition = await self._led_partition()
        if partition is None or not self._waiting:
            return
        last = self._last if self._last is not None else self._last_published(partition)
        records, epoch = list(self._waiting), self._leader_epoch
        config = partition.log.config
        bytes_max = min(BATCH_BYTES_MAX, config.max_message_bytes, config.segment_bytes)
        for batch in await self._broker.worker.call(_encoded_batches, records, last, bytes_max):
            if _led_epoch(partition) != epoch:  # another leader may have published these events meanwhile
                return
            partition.append_as_coordinator(memoryview(batch.records))
            self._last = batch.last
            self.events_count += batch.events_count
            await asyncio.sleep(0)
        del self._waiting[: len(records)]
        self._published += [row for _, row, _ in records]

    def _last_published(self, partition: Partition) -> EventSequence:
        """Return the last published event that belongs to a waiting record."""
        last = last_event(partition)
        waiting = {(revision, record.time_ms) for revision, _, record in self._waiting}
        return _NOTHING if last is None or (last.revision, last.time) not in waiting else last.sequence

    async def _remove(self) -> None:
        """Remove records from the store whose events are on disk, and on all in-sync replicas.

        :raises KafkaError: If the replicas take too long; the records stay.
        """
        partition = await self._led_partition()
        if partition is None or not self._published:
            return
        rows = list(self._published)
        replicated = self._broker.replicas.when_replicated(
            partition, partition.log.log_end_offset, REPLICATION_MS
        )
        try:
            await acknowledged(self._broker.flusher.when_flushed(partition.log), replicated)
        except TimeoutError:
            message = f"Not all in-sync replicas of {AUDIT_TOPIC} have the events after {REPLICATION_MS} ms."
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message) from None
        responses = await self._broker.metadata.write_each(
            rows,
            decide_remove_published,
            lambda *_: None,  # it stays, and is removed later
        )
        removed = set(responses)
        self._published = [row for row in self._published if row not in removed]

    async def _led_partition(self) -> Partition | None:
        """Return the only partition of the topic if this broker leads it; create the topic if there are records.

        When this broker begins to lead, the records that are in the store replace its queue.
        """
        image = self._broker.image
        if not image.audit and AUDIT_TOPIC not in image.topics:
            return None
        partition = await self._partition()
        epoch = _led_epoch(partition)
        if epoch not in (None, self._leader_epoch):
            # The former leader may have published records that this broker has not seen in the store yet.
            await self._broker.metadata.catch_up()
            epoch = _led_epoch(partition)
        if epoch != self._leader_epoch:
            table = self._broker.image.audit if epoch is not None else _NO_RECORDS
            self._waiting = sorted((table.revision(row), row, record) for row, record in table.items())
            self._published, self._last, self._leader_epoch = [], None, epoch
        return partition if epoch is not None else None

    async def _partition(self) -> Partition | None:
        """Return this broker's replica of the only partition; create the topic if it does not exist."""
        await create_internal_topic(self._broker, AUDIT_TOPIC)
        return self._broker.replicas.find(AUDIT_TOPIC, 0)

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.AUDIT_EVENTS, lambda: [({}, self.events_count)])
        registry.add_metric(names.AUDIT_WAITING, lambda: [({}, len(self._waiting))])

    def statistics(self) -> dict[str, int]:
        return {
            "events_count": self.events_count,
            "waiting_count": len(self._waiting),
            "published_count": len(self._published),
        }


def _led_epoch(partition: Partition | None) -> int | None:
    """Return the leader epoch of this broker; None if it does not lead."""
    return partition.leader_epoch if partition is not None and partition.is_leader else None


def decide_remove_published(image: MetadataImage, rows: Sequence[str]) -> Decision[list[str | None]]:
    """Decide to remove records. If the store does not answer, that is sent again: no record has the row of another."""
    changes = tuple(AUDIT.remove(row) for row in rows if row in image.audit)
    return Decision(list(rows), changes, is_idempotent=True)


def last_event(partition: Partition) -> AuditEvent | None:
    """Return the last event in the topic; None if there is none, or if it is not an event.

    :raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
    """
    log = partition.log
    if log.log_end_offset == log.log_start_offset:
        return None
    data = log.read(log.log_end_offset - 1, BATCH_BYTES_MAX, log.log_end_offset, min_one_batch=True).data
    value = decode_all(data)[-1].value
    try:
        return None if value is None else AuditEvent.from_json(value)
    except ValueError as error:
        _log.warning("the last record of the audit topic is not an audit event", why=str(error))
        return None


class _Encoded(NamedTuple):
    """An event in JSON, with its record."""

    event: AuditEvent
    key: bytes
    value: bytes

    @property
    def size_bytes(self) -> int:
        return RECORD_OVERHEAD_BYTES + len(self.key) + len(self.value)


class _Batch(NamedTuple):
    """Events that are appended as one batch."""

    records: bytearray
    last: EventSequence
    events_count: int


def _encoded_batches(
    records: Sequence[tuple[int, str, AuditRecord]], after: EventSequence, bytes_max: int
) -> list[_Batch]:
    """Encode the events after `after` in a worker thread: JSON of thousands takes long."""
    events = [
        event
        for revision, _, record in records
        for event in events_of(revision, record)
        if event.sequence > after
    ]
    return [
        _Batch(
            encode_pairs([(encoded.key, encoded.value) for encoded in batch], batch[-1].event.time),
            batch[-1].event.sequence,
            len(batch),
        )
        for batch in _batches(events, bytes_max)
    ]


def _encoded(event: AuditEvent) -> _Encoded:
    return _Encoded(event, event.resource.encode(), event.to_json())


def _batches(events: list[AuditEvent], bytes_max: int) -> Iterator[list[_Encoded]]:
    """Group events into batches of limited size; an event that exceeds the limit is shortened."""
    batch: list[_Encoded] = []
    size_bytes = BATCH_OVERHEAD_BYTES
    for event in events:
        encoded = _encoded(event)
        if BATCH_OVERHEAD_BYTES + encoded.size_bytes > bytes_max:
            encoded = _encoded(event.shortened())
        if batch and size_bytes + encoded.size_bytes > bytes_max:
            yield batch
            batch, size_bytes = [], BATCH_OVERHEAD_BYTES
        batch.append(encoded)
        size_bytes += encoded.size_bytes
    if batch:
        yield batch
