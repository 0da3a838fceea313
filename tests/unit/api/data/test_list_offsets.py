from pathlib import Path

import pytest

from barnabas.api.data.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MARKERS,
    MAX_TIMESTAMP,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from support.batches import NOW_MS, batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node


def list_offsets_request(*timestamps: int, topic: str = "t", epoch: int = -1) -> ListOffsetsRequest:
    """Request one partition for each timestamp."""
    partitions = [
        ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
        for index, timestamp in enumerate(timestamps)
    ]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)])


async def ask(
    node: RunningNode, request: ListOffsetsRequest, version: int = 11
) -> list[ListOffsetsPartitionResponse]:
    response = await node.ask(request, version)
    return [answer for topic in response.topics for answer in topic.partitions]


async def prepare(node: RunningNode) -> None:
    """Write t-0 with records at NOW_MS + 10, 30, 20, of which the first is deleted."""
    await node.create(new_topic("t"))
    for delta_ms in (10, 30, 20):
        node.partition("t").append_as_leader(batch(b"v", timestamp_ms=NOW_MS + delta_ms), 1)
    node.partition("t").delete_records(1)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (LATEST, (3, -1)),
        (EARLIEST, (1, -1)),
        (EARLIEST_LOCAL, (1, -1)),
        (MAX_TIMESTAMP, (1, NOW_MS + 30)),
        (LATEST_TIERED, (-1, -1)),
        (EARLIEST_PENDING_UPLOAD, (-1, -1)),
        (0, (1, NOW_MS + 30)),
        (NOW_MS + 30, (1, NOW_MS + 30)),
        (NOW_MS + 31, (-1, -1)),
    ],
)
def test_offsets_are_found_by_special_timestamp_and_by_time(
    tmp_path: Path, timestamp: int, expected: tuple[int, int]
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node)
            [answer] = await ask(node, list_offsets_request(timestamp))
            assert (answer.error_code, answer.offset, answer.timestamp) == (0, *expected)

    scenario()


@pytest.mark.parametrize("marker", MARKERS)
def test_a_special_timestamp_is_unknown_to_older_versions(tmp_path: Path, marker: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node)
            for version in range(1, 12):
                [answer] = await ask(node, list_offsets_request(marker), version)
                known = version >= MARKERS[marker]
                assert answer.error_code == (ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION)

    scenario()


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (list_offsets_request(LATEST, topic="gone"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (list_offsets_request(LATEST, epoch=5), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (list_offsets_request(-99), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_invalid_partitions_are_errors(tmp_path: Path, request_: ListOffsetsRequest, code: ErrorCode) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node)
            [answer] = await ask(node, request_)
            assert (answer.error_code, answer.offset, answer.timestamp) == (code, -1, -1)

    scenario()


@on_loop
async def test_a_duplicate_partition_is_an_error_and_others_are_not(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 2))
        request = list_offsets_request(LATEST, LATEST)
        request.topics += list_offsets_request(LATEST).topics
        found = await ask(node, request)
        assert {(answer.partition_index, answer.error_code) for answer in found} == {
            (0, ErrorCode.INVALID_REQUEST),
            (1, ErrorCode.NONE),
        }
