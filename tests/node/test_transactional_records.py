"""Transactions as consumers and tools see them; markers are written directly, as a coordinator would.

Transaction verification is disabled, because the coordinator does not know these transactions.
"""

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.fetch import FetchResponse, PartitionData
from barnabas.wire.records.record import decode_all
from support.batches import batch
from support.transactions import (
    BEFORE_IMPLICIT,
    marker,
    outcomes,
    transactional,
    transactional_produce_request,
    write_markers_request,
)
from support.wire import Wire

pytestmark = pytest.mark.kafka_settings({"transaction.partition.verification.enable": "false"})

COMMITTED = 1
LATEST, MAX_TIMESTAMP = -1, -3


@pytest.fixture
def topic(kafka: EmbeddedBroker) -> str:
    kafka.create_topic("t", configs={"segment.ms": str(2**62)})  # markers are written years after the records
    return "t"


def write(wire: Wire, producer_id: int, sequence: int, *values: bytes, epoch: int = 0) -> ErrorCode:
    request = transactional_produce_request("t", transactional(producer_id, sequence, *values, epoch=epoch))
    answer = wire.ask(request, BEFORE_IMPLICIT).responses[0].partition_responses[0]
    return ErrorCode(answer.error_code)


def end(wire: Wire, producer_id: int, *, commit: bool, epoch: int = 0) -> None:
    answer = wire.ask(
        write_markers_request(marker(producer_id, "t", commit=commit, epoch=epoch, coordinator_epoch=2))
    )
    assert set(outcomes(answer).values()) == {ErrorCode.NONE}


def read(wire: Wire, offset: int = 0, **options: int) -> PartitionData:
    """Return a read_committed fetch."""
    request = wire.fetch_request("t", offset, **options)
    request.isolation_level = COMMITTED
    response: FetchResponse = wire.ask(request)
    return response.responses[0].partitions[0]


def shown(data: PartitionData) -> tuple[int, int, list[tuple[int, int]], list[int]]:
    """Return high watermark, last stable offset, aborted transactions, offsets."""
    aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or []]
    offsets = [record.offset for record in decode_all(bytes(data.records or b""))]
    return data.high_watermark, data.last_stable_offset, aborted, offsets


def write_history(wire: Wire) -> None:
    """Write transactions of producers 9 and 10 alternately: an abort, a commit, and one that stays open from offset
    7 on.
    """
    write(wire, 9, 0, b"a", b"b")
    write(wire, 10, 0, b"c")
    end(wire, 9, commit=False)
    wire.produce("t", batch(b"plain"))
    end(wire, 10, commit=True)
    write(wire, 9, 2, b"d")
    write(wire, 9, 3, b"e")
    wire.produce("t", batch(b"plain"))


HISTORY = (9, 6, [(9, 0)], [0, 1, 2, 3, 4, 5])


def test_read_committed_stops_at_the_open_transaction_and_returns_aborted_ones(
    wire: Wire, topic: str
) -> None:
    write_history(wire)
    assert shown(read(wire)) == HISTORY
    assert shown(read(wire, 4)) == (9, 6, [], [4, 5])
    assert shown(read(wire, 6)) == (9, 6, [], [])
    assert shown(read(wire, 9)) == (9, 6, [], [])


def test_read_uncommitted_returns_everything_without_aborted_transactions(wire: Wire, topic: str) -> None:
    write_history(wire)
    data = wire.fetch("t")
    assert data.aborted_transactions is None
    assert data.last_stable_offset == 6
    assert [record.offset for record in decode_all(bytes(data.records or b""))] == list(range(9))


@pytest.mark.parametrize("kill", [False, True])
def test_transactions_survive_a_restart(kafka: EmbeddedBroker, wire: Wire, topic: str, kill: bool) -> None:
    write_history(wire)
    kafka.restart(kill=kill)
    with Wire(kafka.port) as after:
        assert shown(read(after)) == HISTORY
        assert write(after, 9, 4, b"f") is ErrorCode.NONE
        assert write(after, 9, 6, b"f") is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        end(after, 9, commit=False)
        assert shown(read(after, 6)) == (11, 11, [(9, 6)], [6, 7, 8, 9, 10])


def test_read_committed_offsets_end_at_the_last_stable_offset(wire: Wire, topic: str) -> None:
    wire.produce("t", batch(b"a", timestamp_ms=1_000))
    wire.ask(
        transactional_produce_request("t", transactional(9, 0, b"b", timestamp_ms=2_000)), BEFORE_IMPLICIT
    )

    def offsets(timestamp: int) -> tuple[int, int]:
        """Return the offsets for read_uncommitted and read_committed."""
        committed = wire.list_offset("t", timestamp, isolation_level=COMMITTED)
        return wire.list_offset("t", timestamp).offset, committed.offset

    assert offsets(LATEST) == (2, 1)
    assert offsets(MAX_TIMESTAMP) == (1, -1)
    assert offsets(1_000) == (0, 0)
    assert offsets(1_001) == (1, -1)


@pytest.mark.parametrize("commit", [False, True])
def test_a_read_committed_long_poll_completes_when_the_transaction_ends(
    kafka: EmbeddedBroker, wire: Wire, topic: str, commit: bool
) -> None:
    write(wire, 9, 0, b"a")
    request = wire.fetch_request("t", 0, min_bytes=1, max_wait_ms=60_000)
    request.isolation_level = COMMITTED
    correlation_id = wire.send(request)
    with Wire(kafka.port) as other:
        write(other, 9, 1, b"b")
        end(other, 9, commit=commit)
    response: FetchResponse = wire.receive(type(request), correlation_id)
    data = response.responses[0].partitions[0]
    assert shown(data) == (3, 3, [] if commit else [(9, 0)], [0, 1, 2])


def test_producers_are_described_with_their_transactions(wire: Wire, topic: str) -> None:
    write_history(wire)
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    [found] = wire.ask(request).topics[0].partitions
    states = {
        each.producer_id: (each.last_sequence, each.coordinator_epoch, each.current_txn_start_offset)
        for each in found.active_producers
    }
    assert states == {9: (3, 2, 6), 10: (0, 2, -1)}


def test_records_of_an_open_transaction_can_be_deleted(wire: Wire, topic: str) -> None:
    write_history(wire)
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=8)])
        ],
        timeout_ms=1000,
    )
    [answer] = wire.ask(request).topics[0].partitions
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 8)
    assert shown(read(wire, 8)) == (9, 8, [], [])
    end(wire, 9, commit=False)
    assert shown(read(wire, 8)) == (10, 10, [(9, 6)], [8, 9])


def test_aborted_transactions_are_returned_across_segments(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", configs={"segment.bytes": str(1 << 20), "segment.ms": str(2**62)})
    for sequence in range(5):
        write(wire, 9, sequence, b"x" * 400_000)
    end(wire, 9, commit=False)
    write(wire, 10, 0, b"y")
    end(wire, 10, commit=False)
    assert len(kafka.server.broker.replicas.partition("t", 0).log.segments) > 2
    assert shown(read(wire))[2] == [(9, 0)]
    assert shown(read(wire, 5)) == (8, 8, [(9, 0), (10, 6)], [5, 6, 7])


def test_the_next_epoch_of_a_producer_starts_at_sequence_0(wire: Wire, topic: str) -> None:
    write(wire, 9, 0, b"a")
    end(wire, 9, commit=False)
    assert write(wire, 9, 0, b"a", epoch=1) is ErrorCode.NONE
    assert write(wire, 9, 1, b"b") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert shown(read(wire))[1] == 2
