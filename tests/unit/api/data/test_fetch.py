"""Fetch: what depends on the API version, long lists of aborted transactions, and when a fetch waits."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.data import fetch as module
from barnabas.metadata.acls import decide_create_acls
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from barnabas.wire.records.control import EndTransactionMarker
from support.acls import ALICE, AUTHORIZED, allow
from support.batches import batch, values_of
from support.images import new_topic
from support.loop import on_loop, turns
from support.nodes import RunningNode, frame_of, response_of, running_node


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.KAFKA_STORAGE_ERROR),
        (18, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
@on_loop
async def test_a_failed_disk_is_reported_to_versions_that_have_the_error(
    tmp_path: Path, version: int, code: ErrorCode
) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        node.partition("t").log.take_offline(OSError(5, "Input/output error"))
        partitions = [FetchPartition(partition=0, partition_max_bytes=1000)]
        topics = [FetchTopic(topic="t", topic_id=node.topic_id("t"), partitions=partitions)]
        response = await node.ask(FetchRequest(max_bytes=1000, min_bytes=1, topics=topics), version)
        [answer] = response.responses[0].partitions
        assert answer.error_code == code


def abort(node: RunningNode, producer_id: int) -> int:
    """Write a transaction of one record, abort it, and return the offset of the record."""
    partition = node.partition("t")
    offset = partition.log.log_end_offset
    verification = partition.log.producers.start_verification(producer_id, 0, 0, bumps_epochs=False)
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    partition.append_as_leader(batch(b"v", **options), 1, verification)
    partition.append_transaction_marker(
        EndTransactionMarker(producer_id, 0, 0, False, node.clock.wall_ms()), 0
    )
    return offset


@pytest.mark.parametrize("version", [4, 11, 12, 18])
@on_loop
async def test_a_long_list_of_aborted_transactions_is_encoded_in_a_thread(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITTEN_ABORTED_MAX", 4)
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        aborted = [(producer_id, abort(node, producer_id)) for producer_id in range(5)]
        partitions = [FetchPartition(partition=0, partition_max_bytes=10_000)]
        topics = [FetchTopic("t", node.topic_id("t"), partitions)]
        request = FetchRequest(max_bytes=10_000, min_bytes=1, isolation_level=1, topics=topics)
        _, answer = node.begin(frame_of(request, version))
        assert isinstance(answer, Coroutine)
        response = response_of(FetchResponse, version, b"".join(await answer))
        found = response.responses[0].partitions[0].aborted_transactions or []
        assert [(each.producer_id, each.first_offset) for each in found] == aborted


async def is_answered_at_once(node: RunningNode, request: FetchRequest, version: int = 17) -> bool:
    asking = asyncio.create_task(node.ask(request, version))
    await turns()
    is_answered = asking.done()
    asking.cancel()
    await asyncio.wait([asking])
    return is_answered


#: Fields of a request for the fast path, and of one whose tagged field makes it one for the handler.
PATHS: list[dict[str, Any]] = [{}, {"replica_state": ReplicaState(replica_epoch=1)}]


def request_of(node: RunningNode, **fields: Any) -> FetchRequest:
    partitions = [FetchPartition(partition=0, partition_max_bytes=1000)]
    topics = [FetchTopic("t", node.topic_id("t"), partitions)]
    return FetchRequest(**{"max_wait_ms": 60_000, "min_bytes": 10_000, "topics": topics, **fields})


@pytest.mark.parametrize("fields", PATHS)
@on_loop
async def test_a_fetch_does_not_wait_at_the_end_of_a_segment_if_later_ones_have_records(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        partition, request = node.partition("t"), request_of(node, **fields)
        partition.append_as_leader(batch(b"a"), 1)
        assert not await is_answered_at_once(node, request)
        partition.log.roll()
        assert not await is_answered_at_once(node, request)
        partition.append_as_leader(batch(b"b"), 1)
        assert await is_answered_at_once(node, request)


@on_loop
async def test_a_waiting_fetch_ends_when_records_follow_in_a_new_segment(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        partition = node.partition("t")
        partition.append_as_leader(batch(b"a"), 1)
        asking = asyncio.create_task(node.ask(request_of(node), 17))
        await turns()
        partition.log.roll()
        assert not asking.done()
        partition.append_as_leader(batch(b"b"), 1)
        await turns()
        assert asking.done()
        assert values_of((await asking).responses[0].partitions[0].records) == [b"a"]


@on_loop
async def test_a_fetch_of_committed_records_waits_if_those_in_later_segments_are_not(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        partition = node.partition("t")
        partition.append_as_leader(batch(b"a"), 1)
        partition.log.roll()
        verification = partition.log.producers.start_verification(7, 0, 0, bumps_epochs=False)
        options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        partition.append_as_leader(batch(b"b", **options), 1, verification)
        assert await is_answered_at_once(node, request_of(node))
        assert not await is_answered_at_once(node, request_of(node, isolation_level=1))


@pytest.mark.parametrize(
    ("name", "index", "offset", "waits"),
    [("gone", 0, 0, True), ("t", 7, 0, True), ("t", 1, 9, False), ("t", 1, 0, True)],
)
@pytest.mark.parametrize("version", [12, 17])
@on_loop
async def test_a_fetch_waits_beside_unknown_partitions_but_not_beside_other_errors(
    tmp_path: Path, name: str, index: int, offset: int, waits: bool, version: int
) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 2))
        topic_id = b"?" * 16 if name == "gone" else node.topic_id(name)
        other = FetchTopic(name, topic_id, [FetchPartition(partition=index, fetch_offset=offset)])
        beside, alone = request_of(node), request_of(node, topics=[other])
        beside.topics.append(other)
        assert await is_answered_at_once(node, beside, version) is not waits
        assert await is_answered_at_once(node, alone, version) is ((name, index, offset) != ("t", 1, 0))


@on_loop
async def test_a_fetch_waits_beside_forbidden_topics_and_reports_them(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        await node.create(new_topic("t"), new_topic("forbidden"))
        rules = [allow(AclOperation.READ)]
        await node.broker.metadata.write(lambda image: decide_create_acls(image.acls, rules))
        node.connection.principal = ALICE
        request = request_of(node, min_bytes=1)
        request.topics.append(FetchTopic("forbidden", node.topic_id("forbidden"), [FetchPartition()]))
        asking = asyncio.create_task(node.ask(request, 17))
        await turns()
        assert not asking.done()
        node.partition("t").append_as_leader(batch(b"a"), 1)
        allowed, forbidden = [topic.partitions[0] for topic in (await asking).responses]
        assert values_of(allowed.records) == [b"a"]
        assert forbidden.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
