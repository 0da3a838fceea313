"""Fetch, where the API version decides what is answered."""

from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from support.images import new_topic
from support.loop import on_loop
from support.nodes import running_node


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
async def test_a_disk_that_has_failed_is_told_to_clients_that_know_the_error(
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
