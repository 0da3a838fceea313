"""Transaction verification by Produce (KIP-890)."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.api.data.transactional_produce import AT_ONCE_COUNT
from barnabas.base.ids import TopicPartition
from barnabas.base.turns import TURN_MS_MAX, Turns
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceRequest
from barnabas.wire.records.control import EndTransactionMarker
from support.batches import batch, values_of
from support.images import new_topic
from support.loop import on_loop, turns
from support.nodes import RunningNode, frame_of, running_node
from support.transactions import (
    BEFORE_IMPLICIT,
    IMPLICIT,
    marker,
    transactional,
    transactional_produce_request,
    write_markers_request,
)

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Coordinator:
    """A fake coordinator with configurable responses, which records its calls."""

    def __init__(self) -> None:
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.calls: list[tuple[object, ...]] = []
        self.during_verification: Callable[[], object] = lambda: None

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        self.calls.append((transactional_id, producer_id, producer_epoch, tuple(partitions), adds))
        await turns(2)
        self.during_verification()
        return self.errors


@asynccontextmanager
async def coordinated(directory: Path, **overrides: str) -> AsyncIterator[tuple[RunningNode, Coordinator]]:
    """Run a node with topic t of two partitions and a transaction coordinator."""
    async with running_node(directory, **overrides) as node:
        await node.create(new_topic("t", 2))
        coordinator = Coordinator()
        node.broker.transaction_verifier = coordinator
        yield node, coordinator


async def answers(
    node: RunningNode, request: ProduceRequest, version: int = BEFORE_IMPLICIT
) -> list[PartitionProduceResponse]:
    response = await node.ask(request, version)
    return [answer for topic in response.responses for answer in topic.partition_responses]


async def codes(
    node: RunningNode, request: ProduceRequest, version: int = BEFORE_IMPLICIT
) -> list[ErrorCode]:
    return [ErrorCode(answer.error_code) for answer in await answers(node, request, version)]


@on_loop
async def test_each_transaction_is_verified_once_per_partition(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        both = transactional_produce_request("t", transactional(9, 0, b"a"), transactional(9, 0, b"b"))
        assert await codes(node, both) == [ErrorCode.NONE] * 2
        assert await codes(node, transactional_produce_request("t", transactional(9, 1, b"c"))) == [
            ErrorCode.NONE
        ]
        assert coordinator.calls == [("payments", 9, 0, (P0, P1), False)]
        await node.ask(write_markers_request(marker(9, "t", commit=True)))
        assert await codes(node, transactional_produce_request("t", transactional(9, 2, b"d"))) == [
            ErrorCode.NONE
        ]
        assert coordinator.calls[1:] == [("payments", 9, 0, (P0,), False)]


@on_loop
async def test_since_version_12_produce_adds_partitions_to_the_transaction(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        assert await codes(node, transactional_produce_request("t", transactional(9, 0, b"a")), IMPLICIT) == [
            ErrorCode.NONE
        ]
        assert coordinator.calls == [("payments", 9, 0, (P0,), True)]


@on_loop
async def test_partitions_that_the_coordinator_rejects_fail_individually(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        coordinator.errors[P0] = ErrorCode.TRANSACTION_ABORTABLE
        both = transactional_produce_request("t", transactional(9, 0, b"a"), transactional(9, 0, b"b"))
        refused, taken = await answers(node, both)
        assert (refused.error_code, refused.base_offset) == (ErrorCode.TRANSACTION_ABORTABLE, -1)
        assert "t-0" in (refused.error_message or "")
        assert (taken.error_code, taken.base_offset) == (ErrorCode.NONE, 0)
        assert node.partition("t", 0).log.log_end_offset == 0


@pytest.mark.parametrize(
    ("coordinator_error", "version", "returned"),
    [
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 12, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.INVALID_TXN_STATE, 11, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 3, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_errors_are_mapped_to_those_of_the_request_version(
    tmp_path: Path, coordinator_error: ErrorCode, version: int, returned: ErrorCode
) -> None:
    @on_loop
    async def ask() -> None:
        async with coordinated(tmp_path) as (node, coordinator):
            coordinator.errors[P0] = coordinator_error
            assert await codes(
                node, transactional_produce_request("t", transactional(9, 0, b"a")), version
            ) == [returned]

    ask()


@on_loop
async def test_records_outlive_the_network_buffer_during_verification(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        frame = bytearray(
            frame_of(transactional_produce_request("t", transactional(9, 0, b"a")), BEFORE_IMPLICIT)
        )

        def reuse_buffer() -> None:
            frame[:] = bytes(len(frame))

        coordinator.during_verification = reuse_buffer
        context, request = node.dispatcher.parse(memoryview(frame), node.connection)
        await node.dispatcher.respond(context, request)
        assert values_of(
            node.partition("t").read(0, 1000, read_committed=False, min_one_batch=True).data
        ) == [b"a"]


@on_loop
async def test_a_marker_during_verification_invalidates_it(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        ended = EndTransactionMarker(9, 0, 0, True, 1_000)
        coordinator.during_verification = lambda: node.partition("t").log.append_transaction_marker(ended, 0)
        assert await codes(node, transactional_produce_request("t", transactional(9, 0, b"a"))) == [
            ErrorCode.INVALID_TXN_STATE
        ]


@on_loop
async def test_an_older_epoch_is_rejected_without_verification(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        assert await codes(node, transactional_produce_request("t", transactional(9, 0, b"a", epoch=1))) == [
            ErrorCode.NONE
        ]
        coordinator.calls.clear()
        found = await codes(node, transactional_produce_request("t", transactional(9, 0, b"b")))
        assert found == [ErrorCode.INVALID_PRODUCER_EPOCH]
        assert not coordinator.calls


@on_loop
async def test_a_duplicate_batch_is_acknowledged_after_its_transaction_has_ended(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, _):
        request = transactional_produce_request("t", transactional(9, 0, b"a"))
        assert await codes(node, request) == [ErrorCode.NONE]
        await node.ask(write_markers_request(marker(9, "t", commit=True)))
        (again,) = await answers(node, request)
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
        assert node.partition("t").log.log_end_offset == 2


@on_loop
async def test_records_of_two_producers_in_a_request_are_rejected(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        both = transactional_produce_request("t", transactional(9, 0, b"a"), transactional(10, 0, b"b"))
        assert await codes(node, both) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
        assert not coordinator.calls


@on_loop
async def test_transactional_records_need_a_transactional_id(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, _):
        request = transactional_produce_request("t", transactional(9, 0, b"a"), transactional_id=None)
        assert await codes(node, request) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]


@on_loop
async def test_partitions_without_transactional_records_are_not_verified(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        mixed = transactional_produce_request("t", batch(b"plain"), transactional(9, 0, b"b"))
        assert await codes(node, mixed) == [ErrorCode.NONE] * 2
        assert coordinator.calls == [("payments", 9, 0, (P1,), False)]
        assert node.partition("t", 0).log.last_stable_offset == 1


@on_loop
async def test_unknown_partitions_do_not_prevent_verification_of_others(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        request = transactional_produce_request("t", *[transactional(9, 0, b"a")] * 3)
        expected = [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await codes(node, request) == expected
        assert coordinator.calls == [("payments", 9, 0, (P0, P1), False)]


@on_loop
async def test_verification_can_be_disabled(tmp_path: Path) -> None:
    off = {"transaction_partition_verification_enable": "false"}
    async with coordinated(tmp_path, **off) as (node, coordinator):
        assert await codes(node, transactional_produce_request("t", transactional(9, 0, b"a"))) == [
            ErrorCode.NONE
        ]
        assert not coordinator.calls
        second = transactional_produce_request("t", transactional(9, 1, b"a"), transactional(9, 0, b"b"))
        assert await codes(node, second, IMPLICIT) == [ErrorCode.NONE] * 2
        assert coordinator.calls == [("payments", 9, 0, (P1,), True)]  # as adding, not verifying


@on_loop
async def test_without_coordinators_transactions_start_unverified(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, _):
        node.broker.transaction_verifier = None
        assert await codes(node, transactional_produce_request("t", transactional(9, 0, b"a"))) == [
            ErrorCode.NONE
        ]


@on_loop
async def test_control_records_of_clients_are_rejected(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, _):
        records = batch(
            b"x", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True, control=True
        )
        assert await codes(node, transactional_produce_request("t", records)) == [ErrorCode.INVALID_RECORD]


@on_loop
async def test_non_transactional_records_are_rejected_while_the_producer_has_a_transaction(
    tmp_path: Path,
) -> None:
    async with coordinated(tmp_path) as (node, _):
        assert await codes(node, transactional_produce_request("t", transactional(9, 0, b"a"))) == [
            ErrorCode.NONE
        ]
        plain = transactional(9, 1, b"b", transactional=False)
        assert await codes(node, transactional_produce_request("t", plain)) == [ErrorCode.INVALID_TXN_STATE]


class SlowClock:
    """A turn is over at the second look at the clock."""

    def __init__(self) -> None:
        self._now_ns = 0

    def __call__(self) -> int:
        self._now_ns += (TURN_MS_MAX - 1) * 1_000_000
        return self._now_ns


LARGE_COUNT = 10 * AT_ONCE_COUNT


def large_request(*batches: memoryview, transactional_id: str | None = "payments") -> ProduceRequest:
    """Build a request that writes each batch but the last one once, to successive partitions."""
    repeated = [batches[-1]] * (LARGE_COUNT - len(batches))
    return transactional_produce_request("t", *batches, *repeated, transactional_id=transactional_id)


@pytest.mark.parametrize(
    ("request_sent", "first", "others"),
    [
        (
            large_request(transactional(9, 0, b"a"), transactional_id=None),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        (
            large_request(transactional(9, 0, b"a"), transactional(10, 0, b"b")),
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ),
        (
            large_request(transactional(9, 0, b"a"), batch(b"b")),
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        (large_request(batch(b"b")), ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_request_for_many_partitions_is_handled_in_several_turns(
    tmp_path: Path, request_sent: ProduceRequest, first: ErrorCode, others: ErrorCode
) -> None:
    @on_loop
    async def ask() -> None:
        async with coordinated(tmp_path) as (node, _):
            node.broker.turns = Turns(SlowClock())
            found = await codes(node, request_sent, IMPLICIT)
            assert found[0] is first
            assert set(found[2:]) == {others}
            assert len(found) == LARGE_COUNT
            assert node.broker.turns.statistics()["continued_count"] >= 5

    ask()


@on_loop
async def test_a_transaction_in_many_partitions_is_verified_once(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (node, coordinator):
        await node.create(new_topic("wide", AT_ONCE_COUNT + 1))
        batches = [transactional(9, 0, b"a")] * (AT_ONCE_COUNT + 1)
        coordinator.errors[TopicPartition("wide", 1)] = ErrorCode.TRANSACTION_ABORTABLE
        found = await answers(node, transactional_produce_request("wide", *batches))
        [(*_, partitions, _)] = coordinator.calls
        assert partitions == tuple(TopicPartition("wide", index) for index in range(len(batches)))
        assert [answer.index for answer in found if answer.error_code] == [1]
        assert [answer.index for answer in found] == list(range(len(batches)))


@on_loop
async def test_a_large_transactional_request_without_acks_closes_the_connection_if_it_fails(
    tmp_path: Path,
) -> None:
    async with coordinated(tmp_path) as (node, _):
        request = large_request(transactional(9, 0, b"a"), transactional(10, 0, b"b"))
        request.acks = 0
        context, parsed = node.dispatcher.parse(
            memoryview(bytearray(frame_of(request, IMPLICIT))), node.connection
        )
        assert await node.dispatcher.respond(context, parsed) is None
        assert context.close_after
