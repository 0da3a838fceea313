"""Transaction markers reach every partition, however long that takes."""

import asyncio
from collections.abc import Collection, Mapping

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.coordinator.runner import ShardRunner, ShardState
from barnabas.transactions.markers import MarkerSender
from barnabas.transactions.shard import GetProducerIds, TransactionShard, WriteMarkers
from barnabas.transactions.states import TransactionState
from barnabas.transactions.transaction import TransactionMetadata
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker
from support.loop import in_virtual_time, turns

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
PREPARED = TransactionMetadata(
    "tx", 7, 3, 60_000, TransactionState.PREPARE_COMMIT, 5, 5, frozenset({A, B}), client_version=2
)


class Runner:
    """Records events."""

    def __init__(self) -> None:
        self.state = ShardState.ACTIVE
        self.notified_count = 0
        self.log = self
        self.leader_epoch = 4

    def run_event(self, event: object) -> None:
        self.notified_count += 1


class Writer:
    """Returns given responses, in order."""

    def __init__(self, *answers: dict[TopicPartition, ErrorCode]) -> None:
        self.answers = list(answers)
        self.requested: list[tuple[EndTransactionMarker, set[TopicPartition], int]] = []

    async def write(
        self, marker: EndTransactionMarker, partitions: Collection[TopicPartition], transaction_version: int
    ) -> Mapping[TopicPartition, ErrorCode]:
        self.requested.append((marker, set(partitions), transaction_version))
        return self.answers.pop(0)


class MarkerSenderSetup:
    """A marker sender with its dependencies."""

    def __init__(self, *answers: dict[TopicPartition, ErrorCode]) -> None:
        self.writer, self.runner, self.wants_count = Writer(*answers), Runner(), 0
        self.sender = MarkerSender(self.writer, ManualClock(9), self.get)
        self.sender._find = self.find  # type: ignore[assignment]

    async def get(self) -> None:
        self.wants_count += 1

    def find(self, key: str) -> "ShardRunner[TransactionShard]":
        assert key == "tx"
        return self.runner  # type: ignore[return-value]


@in_virtual_time
async def test_markers_are_written_to_every_partition_and_then_the_shard_is_notified() -> None:
    sending = MarkerSenderSetup({A: ErrorCode.NONE, B: ErrorCode.NONE})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    [(marker, partitions, version)] = sending.writer.requested
    assert marker == EndTransactionMarker(7, 3, 4, commit=True, timestamp_ms=9)
    assert (partitions, version) == ({A, B}, 2)
    assert sending.runner.notified_count == 1
    assert sending.sender.statistics() == {"ending_count": 0, "waiting_count": 0, "retries_count": 0}


@in_virtual_time
async def test_failed_markers_are_retried_and_others_are_not() -> None:
    again = ErrorCode.NOT_ENOUGH_REPLICAS
    sending = MarkerSenderSetup({A: ErrorCode.NONE, B: again}, {B: again}, {B: ErrorCode.NONE})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    assert sending.runner.notified_count == 0
    assert sending.sender.statistics() == {"ending_count": 1, "waiting_count": 1, "retries_count": 1}
    await asyncio.sleep(1)
    assert sending.sender.statistics() == {"ending_count": 0, "waiting_count": 0, "retries_count": 2}
    assert [partitions for _, partitions, _ in sending.writer.requested] == [{A, B}, {B}, {B}]
    assert sending.runner.notified_count == 1


@in_virtual_time
async def test_deleted_or_newer_partitions_do_not_delay_completion() -> None:
    sending = MarkerSenderSetup(
        {A: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, B: ErrorCode.TRANSACTION_COORDINATOR_FENCED}
    )
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    assert sending.runner.notified_count == 1


@in_virtual_time
async def test_a_transaction_without_partitions_completes_immediately() -> None:
    sending = MarkerSenderSetup()
    sending.sender.do(WriteMarkers(PREPARED._replace(partitions=frozenset())))
    await turns()
    assert (sending.writer.requested, sending.runner.notified_count) == ([], 1)


@in_virtual_time
async def test_a_coordinator_that_has_moved_stops_retrying() -> None:
    sending = MarkerSenderSetup({A: ErrorCode.NONE, B: ErrorCode.KAFKA_STORAGE_ERROR})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    sending.runner.state = ShardState.CLOSED
    await asyncio.sleep(1)
    assert len(sending.writer.requested) == 1


@in_virtual_time
async def test_a_former_coordinator_starts_nothing() -> None:
    sending = MarkerSenderSetup()

    def no_coordinator(key: str) -> "ShardRunner[TransactionShard]":
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    sending.sender._find = no_coordinator
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    assert sending.writer.requested == []


@in_virtual_time
async def test_producer_ids_are_requested_when_a_shard_needs_them() -> None:
    sending = MarkerSenderSetup()
    sending.sender.do(GetProducerIds())
    await turns()
    assert sending.wants_count == 1


@in_virtual_time
async def test_markers_unwritten_at_a_stop_are_left_to_the_next_start() -> None:
    sending = MarkerSenderSetup({A: ErrorCode.NONE, B: ErrorCode.NOT_ENOUGH_REPLICAS})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    await sending.sender.stop()
    assert sending.runner.notified_count == 0
