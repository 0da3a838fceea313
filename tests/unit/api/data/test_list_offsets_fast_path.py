"""ListOffsets on the fast path gives the same responses as without it."""

import random
from collections.abc import Coroutine, Iterator
from pathlib import Path

import pytest

from barnabas.api.data.list_offsets import EARLIEST, LATEST, MARKERS, MAX_TIMESTAMP
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from support.acls import ALICE, AUTHORIZED
from support.batches import NOW_MS, batch
from support.fast_paths import Pair
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, frame_of, response_of, running_node

TOPICS = ("t", "u", "long" * 40)


async def prepare(node: RunningNode) -> None:
    """Create topics of two partitions with some records each, some of them deleted."""
    await node.create(*(new_topic(name, 2) for name in TOPICS))
    for name in TOPICS:
        for delta_ms in (10, 30, 20):
            node.partition(name).append_as_leader(batch(b"v", timestamp_ms=NOW_MS + delta_ms), 1)
    node.partition("t").delete_records(1)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), prepare)
    yield made
    made.close()


def random_frame(rng: random.Random, version: int) -> bytes:
    topics = []
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        partitions = [
            ListOffsetsPartition(
                partition_index=rng.choice([0, 0, 1, 2, -1]),
                current_leader_epoch=rng.choice([-1, -1, 0, 1]) if version >= 4 else -1,
                timestamp=rng.choice([LATEST, EARLIEST, *MARKERS, -9, 0, NOW_MS + 15, NOW_MS + 99]),
            )
            for _ in range(rng.randrange(4))
        ]
        topics.append(ListOffsetsTopic(rng.choice([*TOPICS, "t", "gone", ""]), partitions))
    request = ListOffsetsRequest(rng.choice([-1, -1, 2]), topics=topics)
    if version >= 2:
        request.isolation_level = rng.choice([0, 0, 1, 1, 2])
    frame = frame_of(request, version)
    if rng.random() < 0.85:
        return frame
    return frame[: len(frame) - rng.randrange(30)] + rng.choice([b"", b"\0", b"\0\0\0", b"x"])


@pytest.mark.parametrize("version", range(1, 12))
def test_any_request_has_the_same_result_on_both_paths(pair: Pair, version: int) -> None:
    rng = random.Random(version)
    answered_count = pair.answered_in_turn_count
    for _ in range(100):
        frame = random_frame(rng, version)
        fast, decoded = pair.outcomes(frame)
        assert fast == decoded, frame
    assert pair.answered_in_turn_count - answered_count > 30


def list_offsets_request(*timestamps: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(index, timestamp=each) for index, each in enumerate(timestamps)]
    return ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", partitions)])


@on_loop
async def test_log_ends_are_returned_within_the_requests_turn_and_timestamps_later(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        _, answer = node.begin(frame_of(list_offsets_request(LATEST, EARLIEST), 10))
        assert isinstance(answer, list)
        (topic,) = response_of(ListOffsetsResponse, 10, b"".join(answer)).topics
        assert [each.offset for each in topic.partitions] == [3, 0]
        _, later = node.begin(frame_of(list_offsets_request(MAX_TIMESTAMP, EARLIEST), 10))
        assert isinstance(later, Coroutine)
        (topic,) = response_of(ListOffsetsResponse, 10, b"".join(await later or [])).topics
        assert [each.offset for each in topic.partitions] == [1, 0]


@on_loop
async def test_unauthorized_topics_are_errors(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        await prepare(node)
        node.connection.principal = ALICE
        (topic,) = (await node.ask(list_offsets_request(LATEST, EARLIEST))).topics
        assert {each.error_code for each in topic.partitions} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
