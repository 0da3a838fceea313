"""The topic of schemas: reads it continuously, and appends to it as the only writer.

A writer registers under one transactional id, by which it fences all earlier ones, and then reads to the end of the
topic. As long as it is not fenced, nobody else has written since, so what it decides from its state is still true when
its transaction commits. If it is fenced, it begins again.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec, find_offsets
from barnabas.client.consumer.completed_fetch import ConsumedRecord, read_fetched
from barnabas.client.consumer.fetch_messages import FetchLimits
from barnabas.client.consumer.fetching import fetch_partition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import is_retriable
from barnabas.client.producer.batch_sender import BatchSender
from barnabas.client.producer.transaction_requests import TransactionalId
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.registry.options import TOPIC_DEFAULT
from barnabas.registry.records import RegistryRecord, decode_record, encode_record
from barnabas.registry.state import RegistryState
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.records.record import Record, encode_batch

_log = get_logger("barnabas.registry")


_POLICY, _COMPACT = "cleanup.policy", "compact"
_REPLICAS_MAX = 3
_TRANSACTION_TIMEOUT_MS = 30_000
_LANE = "registry"
_LIMITS = FetchLimits()
#: Errors after which the state may be out of date, and the writer must fence others again.
_FENCED = frozenset(
    (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.TRANSACTION_ABORTABLE,
    )
)


class WriterFenced(Exception):
    """Another registry has become the writer; nothing was written."""


class SchemaLog:
    """The topic of one registry. `start` it, and `close` it."""

    def __init__(self, cluster: ClusterClient, topic: str = TOPIC_DEFAULT) -> None:
        self.state = RegistryState()
        self._cluster = cluster
        self._tp = TopicPartition(topic, 0)
        self._position = 0
        self._has_begun = False  #: whether the position is one of the topic
        self._advanced = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._transactions = TransactionalId(cluster, f"barnabas-registry-{topic}")
        self._identity: ProducerIdAndEpoch | None = None
        self._sequence = 0

    async def start(self) -> None:
        """Create the topic if it does not exist, and read it to its end.

        :raises KafkaError: If the topic cannot be created or read, or is not what a registry needs.
        """
        await self._cluster.retrying(self._ensure_topic)
        self._reader = asyncio.ensure_future(self._read_continuously())
        await self.catch_up()

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader

    async def catch_up(self) -> None:
        """Read all that is committed at the time of the call.

        :raises KafkaError: If the topic cannot be read.
        :raises BrokerConnectionError: If no broker can be reached.
        """
        await self._read_up_to(await self._offset(LATEST))

    async def become_writer(self) -> None:
        """Fence other writers, unless this one already did and has not been fenced since; then read to the end.

        :raises KafkaError: If the cluster refuses it.
        """
        if self._identity is None:
            self._identity = await self._transactions.initialize(_TRANSACTION_TIMEOUT_MS)
            self._sequence = 0
        await self.catch_up()

    async def append(self, records: Sequence[RegistryRecord]) -> None:
        """Write records in one transaction, and return when they are in the state.

        :raises WriterFenced: If the decision must be made again.
        :raises KafkaError: If the cluster refuses them.
        """
        assert self._identity is not None, "become_writer comes first"
        identity = self._identity
        try:
            await self._write(records, identity)
        except KafkaError as error:
            self._identity = None
            if error.code in _FENCED:
                raise WriterFenced from error
            with contextlib.suppress(KafkaError, ConnectionError):
                await self._transactions.end(identity, commit=False)
            raise
        except BaseException:
            self._identity = None
            raise
        # The records are committed, but readers of committed records see them only behind the marker, which may come
        # later. A decision without them would give their ids and versions again.
        await self._read_up_to(await self._offset(LATEST, Isolation.READ_UNCOMMITTED))

    async def _write(self, records: Sequence[RegistryRecord], identity: ProducerIdAndEpoch) -> None:
        now_ms = self._cluster.retry.clock.wall_ms()
        batch = encode_batch(
            [Record(0, now_ms, *encode_record(record)) for record in records],
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        await self._transactions.add_partitions(identity, [self._tp])
        async with BatchSender(self._cluster, transactional_id=self._transactions.name) as sender:
            await sender.put([(self._tp, batch)])
            await sender.flush()
        await self._transactions.end(identity, commit=True)
        self._sequence += len(records)

    async def _ensure_topic(self) -> None:
        metadata = await self._cluster.refresh([self._tp.topic])
        info = metadata.topics.get(self._tp.topic)
        if info is None or (
            info.error is not None and info.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):
            await self._create_topic(min(_REPLICAS_MAX, len(metadata.nodes)))
            return
        if len((await self._cluster.topic(self._tp.topic)).partitions) != 1:
            message = (
                f"topic {self._tp.topic} must have one partition, so that all registries see the same order"
            )
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
        await self._check_policy()

    async def _check_policy(self) -> None:
        """Refuse a topic that loses schemas after its retention, as Confluent's registry does."""
        topic = self._tp.topic
        resource = Resource(ResourceKind.TOPIC, topic)
        configs = (await Admin(self._cluster).describe_configs([resource], {_POLICY}))[resource]
        if isinstance(configs, KafkaError):
            if is_retriable(configs):
                raise configs
            _log.warning(
                "the registry cannot see whether the topic of schemas is compacted, as it must be",
                topic=topic,
                why=str(configs),
            )
            return
        policy = next((each.value for each in configs if each.name == _POLICY), None)
        if policy != _COMPACT:
            message = (
                f"topic {topic} has {_POLICY}={policy}, with which schemas are deleted in the end; it must be "
                f"{_COMPACT}: barnabas configs set topic {topic} {_POLICY}={_COMPACT}"
            )
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)

    async def _create_topic(self, replicas_count: int) -> None:
        topic = NewTopic(self._tp.topic, 1, replicas_count, {_POLICY: _COMPACT})
        result = (await Admin(self._cluster).create_topics([topic]))[topic.name]
        if isinstance(result, KafkaError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result
        self._cluster.invalidate()

    # Reading

    async def _offset(self, spec: OffsetSpec, isolation: Isolation = Isolation.READ_COMMITTED) -> int:
        return (await find_offsets(self._cluster, {self._tp: spec}, isolation))[self._tp]

    async def _read_up_to(self, offset: int) -> None:
        async with self._advanced:
            await self._advanced.wait_for(lambda: self._position >= offset or self._failure is not None)
        if self._failure is not None:
            raise self._failure

    async def _read_continuously(self) -> None:
        """Read until the registry is closed; a failure is reported to those who wait, and reading goes on."""
        attempts = 0
        while True:
            try:
                if not self._has_begun:
                    self._position = await self._offset(EARLIEST)
                    self._has_begun = True
                data = await fetch_partition(
                    self._cluster, self._tp, self._position, _LIMITS, Isolation.READ_COMMITTED, lane=_LANE
                )
                records, position = read_fetched(self._tp, data, self._position, Isolation.READ_COMMITTED)
            except (KafkaError, ConnectionError) as error:
                attempts += 1
                await self._failed(error)
                await self._cluster.retry.pause(attempts)
                continue
            attempts = 0
            for record in records:
                self._replay(record)
            async with self._advanced:
                self._position, self._failure = position, None
                self._advanced.notify_all()

    async def _failed(self, error: Exception) -> None:
        self._cluster.invalidate()
        if isinstance(error, KafkaError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            _log.warning("the topic of schemas was deleted or truncated: read again", topic=self._tp.topic)
            self.state, self._position, self._has_begun = RegistryState(), 0, False
            return
        if not is_retriable(error):
            _log.error("the topic of schemas cannot be read", topic=self._tp.topic, why=str(error))
            async with self._advanced:
                self._failure = error
                self._advanced.notify_all()

    def _replay(self, record: ConsumedRecord) -> None:
        try:
            decoded = decode_record(record.key, record.value)
            if decoded is not None:
                self.state.replay(decoded)
        except ValueError as error:
            _log.warning("a record of the topic of schemas is ignored", offset=record.offset, why=str(error))
