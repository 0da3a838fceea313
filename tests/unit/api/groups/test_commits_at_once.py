"""The short way of OffsetCommit does what the handler does: same answers, same offsets, same records."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.groups.offsets.commits import METADATA_MAX
from barnabas.metadata.acls import decide_create_acls, decide_delete_acls
from barnabas.metadata.topic_creation import NewTopic
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.wire.acls import AclBinding, AclFilter, AclPermission, PatternType, ResourceType
from barnabas.wire.acls import AclOperation as Op
from barnabas.wire.coordinator_records.committed_offset import decode_partition, decode_value
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from support.acls import ALICE, AUTHORIZED, ROOT
from support.images import new_topic
from support.loop import on_loop, turns
from support.members import AT_ONCE, join_and_sync
from support.nodes import RunningNode, frame_of, response_of, running_node
from support.offsets import Offsets, codes, commit_topics
from support.quotas import quota
from support.short_ways import Pair, split

LONG = "long" * 40
TOPICS = {"t": 3, "u": 1, LONG: 2}


async def prepare(node: RunningNode) -> None:
    """Topics, and the coordinators of all groups."""
    topics = [NewTopic(name, count, 1) for name, count in TOPICS.items()]
    await node.create(*topics)
    await node.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]))
    await turns()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), prepare)
    yield made
    made.close()


def commit(
    node: RunningNode, offsets: Offsets, version: int = 9, *, correlation_id: int = 7, **fields: Any
) -> bytes:
    """The frame of an OffsetCommit."""
    client_id = fields.pop("client_id", "client")
    request = OffsetCommitRequest(**{"group_id": "g", **fields}, topics=commit_topics(offsets))
    for topic in request.topics:
        known = node.node.image.topics.get(topic.name)
        topic.topic_id = b"?" * 16 if known is None else known.topic_id
    return frame_of(request, version, correlation_id=correlation_id, client_id=client_id)


def answered(answers: bytes | None, version: int = 9) -> list[dict[Any, int]]:
    """(topic, index) -> error code, for each answer."""
    assert answers is not None
    return [
        codes(response_of(OffsetCommitResponse, version, answer))
        for answer in split(answers)
        if isinstance(answer, bytes)
    ]


def committed(node: RunningNode, group_id: str = "g") -> dict[tuple[str, int], Any]:
    """What the coordinator has: (topic, index) -> the committed offset without its time."""
    offsets = node.node.groups.runner(group_id).shard.offsets.table.of_group(group_id)
    return {
        decode_partition(where): decode_value(value)._replace(commit_timestamp_ms=0, topic_id=b"")
        for where, (_, value) in offsets.items()
    }


def offsets_of(node: RunningNode, group_id: str = "g") -> dict[tuple[str, int], int]:
    return {where: each.offset for where, each in committed(node, group_id).items()}


def records(node: RunningNode, group_id: str = "g") -> list[Any]:
    """What stands in the log of a group's shard, whatever batches it is in."""
    log, found, offset = node.node.groups.runner(group_id).log, [], 0
    while batches := log.read(offset):
        found += [record for batch in batches for record, _ in batch.records]
        offset = batches[-1].header.last_offset + 1
    return found


# Anything at all


def random_offset(dice: random.Random) -> Any:
    text = dice.choice(["", "", "text", "t" * 200, "t" * 5000])
    return (dice.choice([-1, 0, dice.randrange(2**62)]), dice.randrange(-1, 5), text)


def random_commit(node: RunningNode, dice: random.Random) -> bytes:
    topics = dice.sample([*TOPICS, "gone"], dice.choice([0, 1, 1, 1, 2]))
    offsets: Offsets = {
        name: {dice.choice([0, 1, 2, 3, -1]): random_offset(dice) for _ in range(dice.randrange(3))}
        for name in topics
    }
    frame = commit(
        node,
        offsets,
        max(dice.randrange(2, 11), dice.randrange(2, 11)),
        correlation_id=dice.randrange(2**31),
        group_id=dice.choice(["g", "g", "h", "", LONG]),
        generation_id_or_member_epoch=dice.choice([-1, -1, -1, 0, 3]),
        member_id=dice.choice(["", "", "m"]),
        client_id=dice.choice([None, "", "client"]),
    )
    if dice.random() < 0.9:
        return frame
    return frame[: len(frame) - dice.randrange(30)] + dice.choice([b"", b"\0", b"\0\0\0", b"x"])


def random_turn(node: RunningNode, dice: random.Random) -> list[bytes]:
    """Frames that arrive together: mostly alike, but for their positions."""
    frames = [random_commit(node, dice)]
    while dice.random() < 0.8:
        if dice.random() < 0.2:
            frames.append(random_commit(node, dice))
            continue
        offsets: Offsets = {"t": {0: dice.randrange(2**40), 2: (dice.randrange(9), 1, "text")}}
        frames.append(commit(node, offsets, correlation_id=dice.randrange(2**31)))
    return frames


@pytest.mark.parametrize("seed", range(3))
def test_any_requests_have_the_same_outcome_by_either_way(pair: Pair, seed: int) -> None:
    dice = random.Random(seed)
    taken_count = pair.taken_count
    for _ in range(150):
        frames = random_turn(pair.short, dice)
        short, long = pair.outcomes_together(*frames)
        assert short == long, frames
    for group_id in ("g", "h"):
        assert committed(pair.short, group_id) == committed(pair.long, group_id) != {}
        assert records(pair.short, group_id) == records(pair.long, group_id)
    assert pair.taken_count - taken_count > 100, "the short way has hardly been taken: this proves little"
    assert pair.longest_run_count > 3


# The everyday request


@pytest.mark.parametrize("version", [8, 9, 10])
def test_a_commit_takes_the_short_way_from_the_first_on(pair: Pair, version: int) -> None:
    taken_count = pair.taken_count
    short, long = pair.outcomes(commit(pair.short, {"t": {0: (5, 1, "text"), 1: 6}, "u": {0: 7}}, version))
    assert short == long
    assert pair.taken_count == taken_count + 1
    assert offsets_of(pair.short) | {("t", 0): 5, ("t", 1): 6, ("u", 0): 7} == offsets_of(pair.short)


@pytest.mark.parametrize(
    "offsets",
    [
        {},
        {"t": {}},
        {"t": {3: 1}},
        {"t": {-1: 1}},
        {"gone": {0: 1}},
        {"t": {0: 1}, "gone": {0: 1}},
        {"t": {0: (1, 1, "t" * 5000)}},
    ],
)
def test_what_is_refused_even_in_part_takes_the_long_way(pair: Pair, offsets: Offsets) -> None:
    taken_count = pair.taken_count
    short, long = pair.outcomes(commit(pair.short, offsets))
    assert short == long
    assert pair.taken_count == taken_count


@pytest.mark.parametrize("version", range(2, 8))
def test_older_versions_take_the_long_way(pair: Pair, version: int) -> None:
    taken_count = pair.taken_count
    short, long = pair.outcomes(commit(pair.short, {"t": {0: 1}}, version))
    assert short == long
    assert pair.taken_count == taken_count


@on_loop
async def test_commits_that_arrive_together_are_answered_one_by_one_and_stand_in_one_batch(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        log = node.node.groups.runner("g").log
        frames = [
            commit(node, {"t": {0: offset, 1: offset + 1}}, correlation_id=offset) for offset in range(5)
        ]
        answers = split(node.send_at_once(*frames) or b"")
        assert len(answers) == len(frames)
        for correlation_id, answer in enumerate(answers):
            assert isinstance(answer, bytes)
            read = response_of(OffsetCommitResponse, 9, answer, correlation_id)
            assert codes(read) == {("t", 0): 0, ("t", 1): 0}
        assert offsets_of(node) == {("t", 0): 4, ("t", 1): 5}
        assert [batch.header.records_count for batch in log.read(0)] == [10]
        assert node.node.groups.runner("g").shard.surroundings.counts.offset_commits_count == 10


@on_loop
async def test_offsets_committed_the_short_way_are_there_after_a_restart(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        assert node.send_at_once(*[commit(node, {"t": {0: (offset, 3, "text")}}) for offset in range(3)])
        runner = node.node.groups.runner("g")
        before = committed(node)
        partition = runner.log.partition
        node.node.groups._start(partition.index, partition)
        await turns()
        assert node.node.groups.runner("g") is not runner
        assert committed(node) == before != {}


# What may change between one commit and the next


@on_loop
async def test_a_member_commits_as_long_as_its_generation_lasts(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AT_ONCE) as node:
        await prepare(node)
        member = await join_and_sync(node)
        generation, member_id = member.joined.generation_id, member.member_id
        frame = commit(node, {"t": {0: 5}}, generation_id_or_member_epoch=generation, member_id=member_id)
        assert answered(node.send_at_once(frame)) == [{("t", 0): 0}]
        stale = commit(node, {"t": {0: 6}}, generation_id_or_member_epoch=generation + 1, member_id=member_id)
        assert node.send_at_once(stale) is None
        assert answered(await node.send(stale)) == [{("t", 0): ErrorCode.ILLEGAL_GENERATION}]
        await node.ask(member.leave())
        assert node.send_at_once(frame) is None
        assert answered(await node.send(frame)) == [{("t", 0): ErrorCode.UNKNOWN_MEMBER_ID}]
        assert offsets_of(node) == {("t", 0): 5}


def _allow(resource_type: ResourceType, name: str) -> AclBinding:
    return AclBinding(resource_type, name, PatternType.LITERAL, ALICE, "*", Op.READ, AclPermission.ALLOW)


@on_loop
async def test_the_short_way_is_for_those_who_may_commit_and_no_longer_than_they_may(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        node.connection.principal = ROOT
        await prepare(node)
        node.connection.principal = ALICE
        frame = commit(node, {"t": {0: 5}})
        for permission in (_allow(ResourceType.GROUP, "g"), _allow(ResourceType.TOPIC, "t")):
            assert node.send_at_once(frame) is None
            await node.node.metadata.write(
                lambda image, permission=permission: decide_create_acls(image.acls, [permission])
            )
        assert node.send_at_once(frame) is not None
        node.connection.principal = "User:bob"
        assert node.send_at_once(frame) is None
        node.connection.principal = ALICE
        await node.node.metadata.write(lambda image: decide_delete_acls(image.acls, [AclFilter()]))
        assert node.send_at_once(frame) is None


@on_loop
async def test_a_topic_that_has_gone_is_not_committed_for(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        frame = commit(node, {"t": {2: 5}})
        assert node.send_at_once(frame) is not None
        await node.node.metadata.write(lambda image: decide_delete(image, [TopicToDelete("t")]))
        assert node.send_at_once(frame) is None
        await node.create(new_topic("t", 2))
        assert node.send_at_once(frame) is None, "it has fewer partitions now"
        assert answered(await node.send(frame)) == [{("t", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}]


@on_loop
async def test_a_coordinator_that_has_moved_away_is_not_asked(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        frame = commit(node, {"t": {0: 5}})
        assert node.send_at_once(frame) is not None
        runner = node.node.groups.runner("g")
        runner.close("somebody else leads")
        assert node.send_at_once(frame) is None
        assert answered(await node.send(frame)) == [{("t", 0): ErrorCode.NOT_COORDINATOR}]


@on_loop
async def test_offsets_that_are_to_be_flushed_are_waited_for(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        frame = commit(node, {"t": {0: 5}})
        assert node.send_at_once(frame) is not None
        partition = node.node.groups.runner("g").log.partition
        partition.reconfigure(replace(partition.log.config, flush_messages=1))
        assert node.send_at_once(frame) is None
        assert answered(await node.send(frame)) == [{("t", 0): 0}]
        assert node.node.flusher.flushes_count == 1


@on_loop
async def test_a_text_longer_than_is_allowed_is_refused(tmp_path: Path) -> None:
    async with running_node(tmp_path, **{METADATA_MAX.replace(".", "_"): "4"}) as node:
        await prepare(node)
        assert node.send_at_once(commit(node, {"t": {0: (5, 1, "four")}})) is not None
        frame = commit(node, {"t": {0: (6, 1, "fives")}})
        assert node.send_at_once(frame) is None
        assert answered(await node.send(frame)) == [{("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}]
        assert offsets_of(node) == {("t", 0): 5}


@on_loop
async def test_many_sizes_of_requests_do_not_cost_memory_for_ever(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        for size in range(50):
            assert node.send_at_once(commit(node, {"t": {0: (size, 1, "x" * size)}})) is not None
        assert len(node.short_ways[OffsetCommitRequest.API_KEY]._forms) <= 8
        assert offsets_of(node) == {("t", 0): 49}


@on_loop
async def test_the_time_that_commits_take_is_counted_and_who_has_taken_too_much_waits(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        await node.ask(quota({"user": "ANONYMOUS"}, request_percentage=1e6))
        frame = commit(node, {"t": {0: 5}}, client_id="test")
        assert node.send_at_once(frame, frame) is not None
        rate = node.node.quotas.of(node.connection.principal, "test").request
        assert rate is not None
        assert rate.measure(0) > 0
        await node.ask(quota({"user": "ANONYMOUS"}, request_percentage=1e-9))
        assert node.send_at_once(frame) is None
        answer = response_of(OffsetCommitResponse, 9, await node.send(frame) or b"")
        assert answer.throttle_time_ms > 0
