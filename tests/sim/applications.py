"""The applications of a simulation: producers and transactional producers, which record what they know."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from barnabas.base.ids import ProducerIdAndEpoch, TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.model import NewTopic
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import BrokerConnectionError, check
from barnabas.client.core.retry import Retry
from barnabas.client.producer.accumulator import RecordMetadata
from barnabas.client.producer.producer import Producer
from barnabas.client.producer.transaction_requests import TransactionalId
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.records.record import Record, encode_batch
from sim.clock import SimulatedClock

PLAIN, COMPACTED, IDLE, SHORTENED = "plain", "compacted", "idle", "shortened"
#: The copies of the records in `PLAIN`, which only `checks.wrong_copies` looks at.
COPIES = "copies"
PARTITIONS_COUNT = 3
_PLAIN_CONFIGS = {"segment.bytes": "1048576", "internal.segment.bytes": "16384", "retention.ms": "-1"}
TOPICS = {
    PLAIN: _PLAIN_CONFIGS,
    IDLE: _PLAIN_CONFIGS,
    SHORTENED: _PLAIN_CONFIGS,
    COMPACTED: {
        "cleanup.policy": "compact",
        "internal.segment.bytes": "8192",
        "segment.bytes": "1048576",
        "min.cleanable.dirty.ratio": "0.01",
    },
}
#: The topics that producers choose from: partitions of `IDLE` get a record now and then.
CHOSEN_TOPICS = (PLAIN,) * 20 + (COMPACTED,) * 20 + (IDLE,)
VALUE_BYTES_MAX = 3_000
#: Records per second of a producer.
RATE = 30
#: Begins the name of producers that do not wait for followers: their records may be lost or come twice.
FAST = "fast"
KEYS_COUNT = 20
#: Shares of the partitions that a transaction writes to, and of the transactions that are committed.
PARTITION_SHARE = 0.6
COMMITTED_SHARE = 0.7
DELETED_SHARE = 0.5
DELETED_AT_ONCE_SHARE = 0.3
#: Share of the administrator's rounds that move a partition, and of the moves that leave out a broker.
MOVED_SHARE = 0.5
FEWER_SHARE = 0.3
TRANSACTION_TIMEOUT_MS = 10_000
RETRY_S = 0.5
#: How many records a reader that starts again reads a second time.
READ_AGAIN_COUNT = 50
MEAN_READ_S = 3.0
COMMITTED_PARTITION = TopicPartition(PLAIN, 0)
OFFSETS_TOPIC = "__consumer_offsets"

#: The last version that does not begin transactions.
PRODUCE_VERSION_MAX = 11

FAILURES = (KafkaError, BrokerConnectionError, TimeoutError, OSError)


def _retrieve(delivery: "asyncio.Future[RecordMetadata]") -> None:
    """Retrieve the result, so that asyncio does not report its error."""
    if not delivery.cancelled():
        delivery.exception()


class Outcome(Enum):
    """What an application knows about a record or a transaction."""

    ACKNOWLEDGED = "acknowledged"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass
class Produced:
    """A record that was sent."""

    tp: TopicPartition
    key: bytes
    value: bytes
    outcome: Outcome
    offset: int = -1
    transaction: int = -1  #: number of the transaction; -1 outside of transactions
    acknowledged_s: float = -1.0

    def acknowledge(self, offset: int, now_s: float) -> None:
        self.offset, self.acknowledged_s, self.outcome = offset, now_s, Outcome.ACKNOWLEDGED


class Read(NamedTuple):
    """A record that a reader has seen."""

    value: bytes | None
    at_s: float


class TopicState(Enum):
    """What an administrator knows about a topic."""

    EXISTS = "exists"
    DELETED = "deleted"
    UNKNOWN = "unknown"


@dataclass
class Journal:
    """Everything that the applications sent, with what they know about it."""

    records: list[Produced] = field(default_factory=list)
    topics: dict[str, TopicState] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)  #: responses that cannot be
    transactions: dict[int, Outcome] = field(default_factory=dict)
    transactions_began_s: dict[int, float] = field(default_factory=dict)
    #: partition -> offset -> the record that was first read there
    read: defaultdict[TopicPartition, dict[int, Read]] = field(default_factory=lambda: defaultdict(dict))
    brokers_count: int = 1
    #: partition -> offset before which records may have been deleted
    deleted_to: defaultdict[TopicPartition, int] = field(default_factory=lambda: defaultdict(int))
    #: what was acknowledged before this time may be lost, in any partition of a topic; -1 if nothing may
    lost_before_s: Callable[[str], float] = lambda topic: -1.0
    damaged: Container[TopicPartition] = ()  #: partitions that may lose records at any time
    #: whether a broker does not know yet that it no longer leads a partition of a topic
    has_former_leader: Callable[[str], bool] = lambda topic: False

    def of_partition(self) -> dict[TopicPartition, list[Produced]]:
        found: defaultdict[TopicPartition, list[Produced]] = defaultdict(list)
        for record in self.records:
            found[record.tp].append(record)
        return found


def new_client(
    bootstrap: str, clock: SimulatedClock, rng: random.Random, *, retries_ms: int = 20_000
) -> ClusterClient:
    retry = Retry(clock=clock, random=random.Random(rng.random()), timeout_ms=retries_ms)
    return ClusterClient(bootstrap, retry=retry, request_timeout_ms=5_000)


async def create_topics(cluster: ClusterClient, replication_factor: int) -> None:
    """Create the topics, with retries until the broker serves."""
    topics = [
        NewTopic(name, PARTITIONS_COUNT, replication_factor, dict(configs))
        for name, configs in (*TOPICS.items(), (COPIES, _PLAIN_CONFIGS))
    ]
    while True:
        try:
            results = await Admin(cluster).create_topics(topics)
        except FAILURES:
            await asyncio.sleep(RETRY_S)
            continue
        if all(
            not isinstance(result, KafkaError) or "EXISTS" in result.code.name for result in results.values()
        ):
            return


class Application:
    """A client that sends records until it is cancelled, and records what it knows in the journal."""

    def __init__(
        self, name: str, bootstrap: str, clock: SimulatedClock, rng: random.Random, journal: Journal
    ) -> None:
        self.name = name
        self.clock = clock
        self.rng = random.Random(rng.random())
        self.journal = journal
        self.cluster = new_client(bootstrap, clock, rng)
        self.once = new_client(bootstrap, clock, rng, retries_ms=0)
        self._number = 0

    async def produce(self) -> None:
        """Send records to random partitions with one idempotent producer after the other."""
        while True:
            producer = Producer(self.cluster, linger_ms=5, delivery_timeout_ms=15_000, clock=self.clock)
            try:
                async with asyncio.TaskGroup() as deliveries:
                    for _ in range(self.rng.randint(20, 200)):
                        await self._send(producer, deliveries)
                        await asyncio.sleep(self.rng.expovariate(RATE))
            except* FAILURES:
                await asyncio.sleep(RETRY_S)
            finally:
                await producer.close(flush=False)

    async def produce_fast(self) -> None:
        """Send records that only the leader has when they are acknowledged (acks=1), each of them once."""
        while True:
            producer = Producer(self.once, acks=1, linger_ms=5, delivery_timeout_ms=5_000, clock=self.clock)
            for _ in range(self.rng.randint(20, 200)):
                with suppress(*FAILURES):
                    record = self._random_record()
                    delivery = await producer.send(
                        record.tp.topic, record.value, record.key, partition=record.tp.partition
                    )
                    delivery.add_done_callback(_retrieve)
                    self.journal.records.append(record)
                await asyncio.sleep(self.rng.expovariate(RATE))
            await producer.close(flush=False)

    async def send_last_records(self, skipped: Collection[TopicPartition] = ()) -> None:
        """Send a record to each partition that is not `skipped`, until it is acknowledged.

        After a power failure offsets at the end of a log may have no records, as in Apache Kafka. A reader waits there
        for the next record.
        """
        for topic in TOPICS:
            for index in range(PARTITIONS_COUNT):
                tp = TopicPartition(topic, index)
                if tp in skipped:
                    continue
                async with Producer(self.cluster, clock=self.clock) as producer:
                    await self.send_and_wait(producer, tp)

    async def send_and_wait(self, producer: Producer, tp: TopicPartition) -> None:
        """Send a record and wait until it is acknowledged."""
        record = self._record(tp)
        self.journal.records.append(record)
        metadata = await producer.send_and_wait(tp.topic, record.value, record.key, partition=tp.partition)
        record.acknowledge(metadata.offset, self._now_s)

    async def _send(self, producer: Producer, deliveries: asyncio.TaskGroup) -> None:
        record = self._random_record()
        delivery = await producer.send(
            record.tp.topic, record.value, record.key, partition=record.tp.partition
        )
        self.journal.records.append(record)
        deliveries.create_task(self._await_delivery(delivery, record))

    async def _await_delivery(self, delivery: "asyncio.Future[RecordMetadata]", record: Produced) -> None:
        try:
            metadata = await delivery
        except FAILURES:
            return  # it may have been written or not
        record.acknowledge(metadata.offset, self._now_s)

    @property
    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def _random_record(self) -> Produced:
        tp = TopicPartition(self.rng.choice(CHOSEN_TOPICS), self.rng.randrange(PARTITIONS_COUNT))
        return self._record(tp, size_bytes=self.rng.randrange(VALUE_BYTES_MAX))

    def _record(self, tp: TopicPartition, *, size_bytes: int = 0, transaction: int = -1) -> Produced:
        self._number += 1
        key = b"%d" % self.rng.randrange(KEYS_COUNT)
        value = f"{self.name}-{self._number}".encode() + bytes(size_bytes)
        return Produced(tp, key, value, Outcome.UNKNOWN, transaction=transaction)

    # Administration

    async def administer(self) -> None:
        """Create topics, and delete some of them."""
        while True:
            self._number += 1
            name = f"{self.name}-topic-{self._number}"
            await self._create(name)
            if self.journal.topics[name] is TopicState.EXISTS and self.rng.random() < DELETED_AT_ONCE_SHARE:
                await self._delete(name, self.once)  # probably at another broker
            await asyncio.sleep(self.rng.expovariate(1.5))
            await self._move_leaders()
            existing = [name for name, state in self.journal.topics.items() if state is TopicState.EXISTS]
            if existing and self.rng.random() < DELETED_SHARE:
                await self._delete(self.rng.choice(existing), self.cluster)

    async def _move_leaders(self) -> None:
        """Elect preferred leaders, or move a partition: to other brokers, or to the same in another order."""
        brokers = list(range(1, self.journal.brokers_count + 1))
        with suppress(*FAILURES):
            if self.rng.random() < 0.5:
                await Admin(self.once).elect_leaders()
            elif self.rng.random() < MOVED_SHARE:
                tp = TopicPartition(self.rng.choice(list(TOPICS)), self.rng.randrange(PARTITIONS_COUNT))
                count = len(brokers) - (self.rng.random() < FEWER_SHARE)
                replicas = self.rng.sample(brokers, max(count, 1))
                await Admin(self.once).alter_partition_reassignments({tp: replicas})

    async def _create(self, name: str) -> None:
        replicas_count = self.rng.randint(1, self.journal.brokers_count)
        new = NewTopic(name, self.rng.randint(1, 3), replicas_count)
        requested = Admin(self.cluster).create_topics([new])
        await self._change(name, requested, TopicState.EXISTS, ErrorCode.TOPIC_ALREADY_EXISTS)

    async def _delete(self, name: str, cluster: ClusterClient) -> None:
        requested = Admin(cluster).delete_topics([name])
        await self._change(name, requested, TopicState.DELETED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    async def _change(
        self, name: str, requested: Awaitable[Mapping[str, Any]], state: TopicState, impossible: ErrorCode
    ) -> None:
        """:param impossible: An error that only an earlier, equal request could cause."""
        self.journal.topics[name] = TopicState.UNKNOWN
        try:
            result = (await requested)[name]
        except FAILURES:
            return
        if not isinstance(result, KafkaError):
            self.journal.topics[name] = state
        elif result.code is impossible:
            self.journal.wrong.append(f"repeated: {name} is not {state.value}, but {impossible.name}")

    # Reading

    async def read(self) -> None:
        """Read a topic again and again: what was read once stays at its offset."""
        positions = {TopicPartition(PLAIN, index): 0 for index in range(PARTITIONS_COUNT)}
        while True:
            try:
                async with Consumer(self.cluster) as consumer:
                    starts = {tp: max(0, position - READ_AGAIN_COUNT) for tp, position in positions.items()}
                    await consumer.assign(starts)
                    end_s = self._now_s + self.rng.expovariate(1 / MEAN_READ_S)
                    while self._now_s < end_s:
                        for record in await consumer.poll(timeout_ms=1_000):
                            tp = TopicPartition(record.topic, record.partition)
                            positions[tp] = record.offset + 1
                            self._note_read(tp, record.offset, record.value)
            except FAILURES:
                positions = dict.fromkeys(positions, 0)
                await asyncio.sleep(RETRY_S)

    def _note_read(self, tp: TopicPartition, offset: int, value: bytes | None) -> None:
        before = self.journal.read[tp].setdefault(offset, Read(value, self._now_s))
        may_change = tp in self.journal.damaged or self.journal.lost_before_s(PLAIN) >= before.at_s
        if before.value != value and not may_change:
            self.journal.wrong.append(f"changed: {tp} offset {offset} was read with another record before")

    # Groups

    async def commit_offsets(self) -> None:
        """Look for the last committed offset of a group and commit the next one, again and again, each once."""
        groups, tp = Groups(self.once), COMMITTED_PARTITION
        committed, committed_s, uncertain = -1, -1.0, {-1}
        while True:
            await asyncio.sleep(self.rng.expovariate(4))
            with suppress(*FAILURES):
                may_be_old = self.journal.has_former_leader(OFFSETS_TOPIC)  # which responds until it knows
                found = (await groups.offsets(self.name, [tp])).get(tp, OffsetAndMetadata(-1, -1, ""))
                is_expected = isinstance(found, KafkaError) or found.offset in {committed, *uncertain - {-1}}
                if not is_expected and not may_be_old and not self.journal.has_former_leader(OFFSETS_TOPIC):
                    self._note_offset(found.offset, committed, committed_s)
            self._number += 1
            try:
                refused = await groups.commit_offsets(self.name, {tp: self._number})
            except FAILURES:
                uncertain.add(self._number)  # it may be committed at any time
                continue
            if refused[tp] is not None:
                uncertain.add(self._number)
                continue
            committed, committed_s = self._number, self._now_s

    def _note_offset(self, found: int, committed: int, committed_s: float) -> None:
        if self.journal.lost_before_s(OFFSETS_TOPIC) < committed_s:
            self.journal.wrong.append(
                f"committed offset: {self.name} has {found}, {committed} was acknowledged"
            )

    # Transactions

    async def transact(self) -> None:
        """Run transactions over several partitions."""
        transactional_id = TransactionalId(self.cluster, self.name)
        while True:
            try:
                identity = await transactional_id.initialize(TRANSACTION_TIMEOUT_MS)
                sequences: defaultdict[TopicPartition, int] = defaultdict(int)
                while True:
                    await self._transact_once(transactional_id, identity, sequences)
                    await asyncio.sleep(self.rng.expovariate(10))
            except FAILURES:
                await asyncio.sleep(RETRY_S)

    async def _transact_once(
        self,
        transactional_id: TransactionalId,
        identity: ProducerIdAndEpoch,
        sequences: defaultdict[TopicPartition, int],
    ) -> None:
        number = len(self.journal.transactions)
        self.journal.transactions[number] = Outcome.UNKNOWN
        self.journal.transactions_began_s[number] = self._now_s
        indexes = [index for index in range(PARTITIONS_COUNT) if self.rng.random() < PARTITION_SHARE]
        partitions = [TopicPartition(PLAIN, index) for index in indexes]
        if partitions:
            await transactional_id.add_partitions(identity, partitions)
        for tp in partitions:
            records = [self._record(tp, transaction=number) for _ in range(self.rng.randint(1, 5))]
            self.journal.records += records
            await self.write(tp, records, identity, sequences[tp])
            sequences[tp] += len(records)
        commit = self.rng.random() < COMMITTED_SHARE
        if partitions:
            await transactional_id.end(identity, commit=commit)
        self.journal.transactions[number] = Outcome.ACKNOWLEDGED if commit else Outcome.ABORTED

    async def write(
        self,
        tp: TopicPartition,
        records: list[Produced],
        identity: ProducerIdAndEpoch,
        base_sequence: int,
        *,
        version_max: int = PRODUCE_VERSION_MAX,
    ) -> None:
        """Write records in a transaction."""
        now_ms = self.clock.wall_ms()
        batch = encode_batch(
            [Record(index, now_ms, record.key, record.value) for index, record in enumerate(records)],
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=base_sequence,
            transactional=True,
        )
        data = TopicProduceData(
            name=tp.topic, partition_data=[PartitionProduceData(tp.partition, bytes(batch))]
        )
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=5_000, topic_data=[data])

        async def attempt() -> None:
            response: ProduceResponse = await self.cluster.send(
                request, await self.cluster.leader(tp), version_max=version_max
            )
            [partition] = response.responses[0].partition_responses
            check(partition.error_code, f"cannot write to {tp}")
            for index, record in enumerate(records):
                record.offset = partition.base_offset + index

        await self.cluster.retrying(attempt)
