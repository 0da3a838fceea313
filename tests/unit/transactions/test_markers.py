"""The ends of transactions reach every partition, however long that takes."""

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
    """Takes what it is told."""

    def __init__(self) -> None:
        self.state = ShardState.ACTIVE
        self.told_count = 0
        self.log = self
        self.leader_epoch = 4

    def run_event(self, event: object) -> None:
        self.told_count += 1


class Writer:
    """Answers what it is to answer, in order."""

    def __init__(self, *answers: dict[TopicPartition, ErrorCode]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[EndTransactionMarker, set[TopicPartition], int]] = []

    async def write(
        self, marker: EndTransactionMarker, partitions: Collection[TopicPartition], transaction_version: int
    ) -> Mapping[TopicPartition, ErrorCode]:
        self.asked.append((marker, set(partitions), transaction_version))
        return self.answers.pop(0)


class Sending:
    """A sender with all around it."""

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
async def test_every_partition_is_told_and_then_the_shard() -> None:
    sending = Sending({A: ErrorCode.NONE, B: ErrorCode.NONE})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    [(marker, partitions, version)] = sending.writer.asked
    assert marker == EndTransactionMarker(7, 3, 4, commit=True, timestamp_ms=9)
    assert (partitions, version) == ({A, B}, 2)
    assert sending.runner.told_count == 1
    assert sending.sender.statistics() == {"ending_count": 0, "waiting_count": 0, "retries_count": 0}


@in_virtual_time
async def test_what_could_not_be_told_is_told_again_and_nothing_else() -> None:
    again = ErrorCode.NOT_ENOUGH_REPLICAS
    sending = Sending({A: ErrorCode.NONE, B: again}, {B: again}, {B: ErrorCode.NONE})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    assert sending.runner.told_count == 0
    assert sending.sender.statistics() == {"ending_count": 1, "waiting_count": 1, "retries_count": 1}
    await asyncio.sleep(1)
    assert sending.sender.statistics() == {"ending_count": 0, "waiting_count": 0, "retries_count": 2}
    assert [partitions for _, partitions, _ in sending.writer.asked] == [{A, B}, {B}, {B}]
    assert sending.runner.told_count == 1


@in_virtual_time
async def test_partitions_that_are_gone_or_further_on_hold_up_nothing() -> None:
    sending = Sending({A: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, B: ErrorCode.TRANSACTION_COORDINATOR_FENCED})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    assert sending.runner.told_count == 1


@in_virtual_time
async def test_a_transaction_without_partitions_is_over_at_once() -> None:
    sending = Sending()
    sending.sender.do(WriteMarkers(PREPARED._replace(partitions=frozenset())))
    await turns()
    assert (sending.writer.asked, sending.runner.told_count) == ([], 1)


@in_virtual_time
async def test_a_coordinator_that_has_gone_tries_no_longer() -> None:
    sending = Sending({A: ErrorCode.NONE, B: ErrorCode.KAFKA_STORAGE_ERROR})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    sending.runner.state = ShardState.CLOSED
    await asyncio.sleep(1)
    assert len(sending.writer.asked) == 1


@in_virtual_time
async def test_who_does_not_coordinate_any_longer_begins_nothing() -> None:
    sending = Sending()

    def nobody(key: str) -> "ShardRunner[TransactionShard]":
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    sending.sender._find = nobody
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    assert sending.writer.asked == []


@in_virtual_time
async def test_producer_ids_are_got_when_a_shard_lacks_them() -> None:
    sending = Sending()
    sending.sender.do(GetProducerIds())
    await turns()
    assert sending.wants_count == 1


@in_virtual_time
async def test_what_is_not_told_when_the_broker_stops_is_left_to_the_next_start() -> None:
    sending = Sending({A: ErrorCode.NONE, B: ErrorCode.NOT_ENOUGH_REPLICAS})
    sending.sender.do(WriteMarkers(PREPARED))
    await turns()
    await sending.sender.stop()
    assert sending.runner.told_count == 0
