import asyncio
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.log.producers.producer_state_manager import ActiveProducer
from barnabas.metadata.brokers import decide_register
from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.control import EndTransactionMarker
from support.images import broker, manually_assigned, new_topic
from support.loop import in_virtual_time, on_loop, turns
from support.nodes import RunningNode, frame_of, running_node
from support.transactions import (
    marker,
    outcomes,
    transactional,
    transactional_produce_request,
    write_markers_request,
)

#: Transactions need no coordinator.
UNVERIFIED = {"transaction_partition_verification_enable": "false"}


async def begin(node: RunningNode, *producer_ids: int, epoch: int = 0) -> None:
    for producer_id in producer_ids:
        await node.ask(
            transactional_produce_request("t", transactional(producer_id, 0, b"x", epoch=epoch)), 11
        )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_transactions_end_in_every_requested_partition(tmp_path: Path, version: int) -> None:
    @on_loop
    async def ask() -> None:
        async with running_node(tmp_path, **UNVERIFIED) as node:
            await node.create(new_topic("t", 2))
            both = transactional_produce_request("t", transactional(9, 0, b"x"), transactional(9, 0, b"y"))
            await node.ask(both, 11)
            request = write_markers_request(
                marker(9, "t", commit=False, coordinator_epoch=3, partitions=(0, 1))
            )
            answer = await node.ask(request, version)
            assert outcomes(answer) == {(9, "t", 0): ErrorCode.NONE, (9, "t", 1): ErrorCode.NONE}
            for index in (0, 1):
                log = node.partition("t", index).log
                assert (log.last_stable_offset, log.log_end_offset) == (2, 2)
                (producer,) = log.producers.states.active
                assert isinstance(producer, ActiveProducer)
                assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (3, -1)

    ask()


@on_loop
async def test_each_partition_and_producer_has_its_own_result(tmp_path: Path) -> None:
    async with running_node(tmp_path, **UNVERIFIED) as node:
        await node.create(new_topic("t"))
        await begin(node, 9, 10)
        await begin(node, 11, epoch=5)
        answer = await node.ask(
            write_markers_request(
                marker(9, "gone", "t", commit=True),
                marker(10, "t", commit=True, partitions=(0, 7)),
                marker(11, "t", commit=True, epoch=4),
                marker(12, "t", commit=True),
            )
        )
        assert outcomes(answer) == {
            (9, "gone", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (9, "t", 0): ErrorCode.NONE,
            (10, "t", 0): ErrorCode.NONE,
            (10, "t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (11, "t", 0): ErrorCode.INVALID_PRODUCER_EPOCH,
            (12, "t", 0): ErrorCode.NONE,
        }
        assert node.partition("t").log.last_stable_offset == 2


@on_loop
async def test_two_markers_of_a_producer_are_written_and_the_later_result_is_returned(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, **UNVERIFIED) as node:
        await node.create(new_topic("t"))
        await begin(node, 9)
        ended = [
            marker(9, "t", commit=True, coordinator_epoch=4),
            marker(9, "t", commit=True, coordinator_epoch=3),
        ]
        answer = await node.ask(write_markers_request(*ended))
        assert outcomes(answer) == {(9, "t", 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED}
        assert node.partition("t").log.log_end_offset == 2


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (10, -1)])
def test_an_invalid_producer_fails_the_request_before_anything_is_written(
    tmp_path: Path, producer_id: int, epoch: int
) -> None:
    @on_loop
    async def ask() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            wrong = marker(producer_id, "t", commit=True, epoch=epoch)
            answer = await node.ask(write_markers_request(marker(9, "t", commit=True), wrong))
            assert set(outcomes(answer).values()) == {ErrorCode.INVALID_REQUEST}
            assert node.partition("t").log.log_end_offset == 0

    ask()


@on_loop
async def test_an_empty_request_has_an_empty_response(tmp_path: Path) -> None:
    async with running_node(tmp_path, **UNVERIFIED) as node:
        assert (await node.ask(write_markers_request())).markers == []
        assert (await node.ask(write_markers_request(marker(9, commit=True)))).markers == []


@on_loop
async def test_a_duplicate_partition_gets_one_marker(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        answer = await node.ask(write_markers_request(marker(9, "t", "t", commit=True)))
        assert outcomes(answer) == {(9, "t", 0): ErrorCode.NONE}
        assert node.partition("t").log.log_end_offset == 1


@on_loop
async def test_a_transaction_of_version_2_ends_with_the_next_epoch(tmp_path: Path) -> None:
    async with running_node(tmp_path, **UNVERIFIED) as node:
        await node.create(new_topic("t"))
        await begin(node, 9)
        late = await node.ask(write_markers_request(marker(9, "t", commit=True, transaction_version=2)))
        assert outcomes(late) == {(9, "t", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        for _ in range(2):  # the second request writes it again
            answer = await node.ask(
                write_markers_request(marker(9, "t", commit=True, epoch=1, transaction_version=2))
            )
            assert outcomes(answer) == {(9, "t", 0): ErrorCode.NONE}
        assert node.partition("t").log.last_stable_offset == 3


@on_loop
async def test_subscribers_receive_appended_markers(tmp_path: Path) -> None:
    async with running_node(tmp_path, **UNVERIFIED) as node:
        received: list[tuple[TopicPartition, EndTransactionMarker]] = []
        node.broker.replicas.on_transaction_marker = lambda partition, ended: received.append(
            (partition, ended)
        )
        await node.create(new_topic("t"))
        await begin(node, 9, epoch=1)
        await node.ask(
            write_markers_request(marker(9, "t", commit=True), marker(9, "t", commit=True, epoch=1))
        )
        assert [(partition, ended.producer_epoch, ended.commit) for partition, ended in received] == [
            (TopicPartition("t", 0), 1, True)
        ]


@in_virtual_time
async def test_the_response_waits_for_every_replica_up_to_its_timeout(tmp_path: Path) -> None:
    async with running_node(tmp_path, request_timeout_ms="500", **UNVERIFIED) as node:
        await node.broker.metadata.write(lambda image: decide_register(image.brokers, broker(2)))
        await node.create(manually_assigned("t", [1, 2]))
        await begin(node, 9)
        asking = asyncio.create_task(node.ask(write_markers_request(marker(9, "t", commit=True))))
        await turns()
        assert not asking.done()
        assert outcomes(await asking) == {(9, "t", 0): ErrorCode.REQUEST_TIMED_OUT}
        assert node.partition("t").log.log_end_offset == 2
        assert node.partition("t").log.last_stable_offset == 0


@in_virtual_time
async def test_a_marker_that_waits_for_replicas_does_not_hold_up_the_next(tmp_path: Path) -> None:
    async with running_node(tmp_path, request_timeout_ms="500", **UNVERIFIED) as node:
        await node.broker.metadata.write(lambda image: decide_register(image.brokers, broker(2)))
        await node.create(manually_assigned("t", [1, 2]), new_topic("u"))
        await begin(node, 9)
        await node.ask(transactional_produce_request("u", transactional(10, 0, b"y")), 11)
        request = write_markers_request(marker(9, "t", commit=True), marker(10, "u", commit=True))
        asking = asyncio.create_task(node.ask(request))
        await turns()
        assert not asking.done()
        assert node.partition("u").log.last_stable_offset == 2
        assert outcomes(await asking) == {
            (9, "t", 0): ErrorCode.REQUEST_TIMED_OUT,
            (10, "u", 0): ErrorCode.NONE,
        }


@pytest.mark.parametrize(
    ("client_id", "is_audited"), [("kafka-admin", True), ("broker-1", False), ("broker-7", True)]
)
def test_only_the_markers_of_administrators_are_audited(
    tmp_path: Path, client_id: str, is_audited: bool
) -> None:
    @on_loop
    async def ask() -> None:
        async with running_node(tmp_path, audited=True, **UNVERIFIED) as node:
            await node.create(new_topic("t"))
            await begin(node, 9)
            before = len(node.broker.image.audit)
            request = write_markers_request(marker(9, "t", commit=False))
            await node.send(frame_of(request, 2, client_id=client_id))
            assert len(node.broker.image.audit) - before == is_audited

    ask()
