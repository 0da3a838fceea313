"""OffsetCommit on the fast path gives the same responses, logs and offsets as without it."""

import asyncio
import random
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.acls import decide_create_acls
from barnabas.metadata.topic_creation import TopicToCreate
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.coordinator_records.committed_offset import decode_partition, decode_value
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from support.acls import ALICE, AUTHORIZED, allow
from support.fast_paths import Pair
from support.loop import in_virtual_time, on_loop, turns
from support.nodes import RunningNode, frame_of, response_of, running_node
from support.offsets import Offsets, codes, commit_topics

LONG = "long" * 40
TOPICS = {"t": 3, "u": 1, LONG: 2}


async def prepare(node: RunningNode) -> None:
    """Create topics, and load the coordinators of all groups."""
    await node.create(*(TopicToCreate(name, count, 1) for name, count in TOPICS.items()))
    await node.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]))
    await turns()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), prepare)
    yield made
    made.close()


def commit(node: RunningNode, offsets: Offsets, version: int = 9, **fields: Any) -> bytes:
    """Encode an OffsetCommit frame."""
    request = OffsetCommitRequest(**{"group_id": "g", **fields}, topics=commit_topics(offsets))
    for topic in request.topics:
        known = node.broker.image.topics.get(topic.name)
        topic.topic_id = b"?" * 16 if known is None else known.topic_id
    return frame_of(request, version)


def committed(node: RunningNode, group_id: str = "g") -> dict[tuple[str, int], Any]:
    """Return (topic, index) -> the committed offset without its time and topic id."""
    offsets = node.broker.groups.runner(group_id).shard.offsets.table.of_group(group_id)
    return {
        decode_partition(where): decode_value(value)._replace(commit_timestamp_ms=0, topic_id=b"")
        for where, (_, value) in offsets.items()
    }


def records(node: RunningNode, group_id: str = "g") -> list[Any]:
    """Return the records in the log of a group's shard."""
    log, found, offset = node.broker.groups.runner(group_id).log, [], 0
    while batches := log.read(offset):
        found += [record for batch in batches for record, _ in batch.records]
        offset = batches[-1].header.last_offset + 1
    return found


def random_offset(rng: random.Random) -> Any:
    text = rng.choice(["", "", "text", "ü" * 70, "t" * 200, "t" * 5000])
    return (rng.choice([-1, 0, rng.randrange(2**62)]), rng.randrange(-1, 5), text)


def random_commit(node: RunningNode, rng: random.Random) -> bytes:
    topics = rng.sample([*TOPICS, "gone"], rng.choice([0, 1, 1, 1, 2]))
    offsets: Offsets = {
        name: {rng.choice([0, 0, 0, 1, 2, 3, -1]): random_offset(rng) for _ in range(rng.randrange(4))}
        for name in topics
    }
    version = rng.randrange(0, 11)
    frame = commit(
        node,
        offsets,
        version,
        group_id=rng.choice(["g", "g", "h", "", LONG]),
        generation_id_or_member_epoch=rng.choice([-1, -1, -1, 0, 3]),
        member_id=rng.choice(["", "", "m"]),
        **({"retention_time_ms": rng.choice([-1, 5000])} if 2 <= version <= 4 else {}),
    )
    if rng.random() < 0.8:
        return frame
    return frame[: len(frame) - rng.randrange(30)] + rng.choice([b"", b"\0", b"\0\0\0", b"x"])


@pytest.mark.parametrize("seed", range(4))
def test_any_request_has_the_same_result_on_both_paths(pair: Pair, seed: int) -> None:
    rng = random.Random(seed)
    answered_count = pair.answered_in_turn_count
    for _ in range(300):
        frame = random_commit(pair.fast, rng)
        fast, decoded = pair.outcomes(frame)
        assert fast == decoded, frame
    for group_id in ("g", "h"):
        assert committed(pair.fast, group_id) == committed(pair.decoding, group_id) != {}
        assert records(pair.fast, group_id) == records(pair.decoding, group_id)
    assert pair.answered_in_turn_count - answered_count > 20


@pytest.mark.parametrize("version", range(2, 11))
def test_a_commit_completes_within_its_turn(pair: Pair, version: int) -> None:
    answered_count = pair.answered_in_turn_count
    frame = commit(pair.fast, {"t": {0: (version, 1, "text"), 1: 6}, "u": {0: 7}}, version)
    fast, decoded = pair.outcomes(frame)
    assert fast == decoded
    assert pair.answered_in_turn_count == answered_count + 1
    assert isinstance(fast, tuple)
    assert codes(response_of(OffsetCommitResponse, version, fast[0])) == dict.fromkeys(
        codes(response_of(OffsetCommitResponse, version, fast[0])), 0
    )
    assert committed(pair.fast)["t", 0].offset == version


@on_loop
async def test_permissions_are_checked_for_each_commit(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        node.connection.principal = "User:root"
        await prepare(node)
        frame = commit(node, {"t": {0: 5}})
        node.connection.principal = ALICE
        response = response_of(OffsetCommitResponse, 9, await node.send(frame) or b"")
        assert codes(response) == {("t", 0): ErrorCode.GROUP_AUTHORIZATION_FAILED}
        for permission in (allow(AclOperation.READ, ResourceType.GROUP, "g"), allow(AclOperation.READ)):
            await node.broker.metadata.write(
                lambda image, acl=permission: decide_create_acls(image.acls, [acl])  # type: ignore[misc]
            )
        response = response_of(OffsetCommitResponse, 9, await node.send(frame) or b"")
        assert codes(response) == {("t", 0): 0}


@on_loop
async def test_a_commit_waits_for_the_disk_if_the_topic_flushes_every_message(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        partition = node.broker.groups.runner("g").log.partition
        partition.reconfigure(replace(partition.log.config, flush_messages=1))
        _, answer = node.begin(commit(node, {"t": {0: 5}}))
        assert isinstance(answer, Coroutine)
        parts = await answer
        assert codes(response_of(OffsetCommitResponse, 9, b"".join(parts or []))) == {("t", 0): 0}
        assert partition.log.recovery_point == partition.log.log_end_offset


@in_virtual_time
async def test_a_commit_that_cannot_be_stored_is_an_error(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        log = node.broker.groups.runner("g").log.partition.log
        log.take_offline(OSError(5, "Input/output error"))
        response = response_of(OffsetCommitResponse, 9, await node.send(commit(node, {"t": {0: 5}})) or b"")
        assert codes(response) == {("t", 0): ErrorCode.NOT_COORDINATOR}
        assert committed(node) == {}
        await asyncio.sleep(0)
