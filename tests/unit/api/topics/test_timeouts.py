"""A request that times out gets an error; what it started still completes."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.metadata import MetadataRequest
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

#: request, a function that finds its results, and the topics (name -> partitions) afterwards; "t" has one at first
REQUESTS: list[tuple[Any, str, dict[str, int]]] = [
    (
        CreateTopicsRequest([CreatableTopic("new", num_partitions=2, replication_factor=1)]),
        "topics",
        {"t": 1, "new": 2},
    ),
    (DeleteTopicsRequest([DeleteTopicState(name="t")], ["t"]), "responses", {}),
    (CreatePartitionsRequest([CreatePartitionsTopic("t", 3, None)]), "results", {"t": 3}),
]
ids = [type(request).__name__ for request, _, _ in REQUESTS]


async def topics(node: RunningNode) -> dict[str, int]:
    described = await node.ask(MetadataRequest(topics=None))
    return {topic.name: len(topic.partitions) for topic in described.topics}


@pytest.mark.parametrize(("request_", "outcomes", "after"), REQUESTS, ids=ids)
def test_a_slow_request_completes_after_its_timeout(
    tmp_path: Path, request_: Any, outcomes: str, after: dict[str, int]
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            node.store.hold()
            request_.timeout_ms = 1
            found = getattr(await node.ask(request_), outcomes)
            assert {each.error_code for each in found} == {ErrorCode.REQUEST_TIMED_OUT}
            assert all("may still be" in each.error_message for each in found)
            assert await topics(node) == {"t": 1}
            revision = node.store.revision
            node.store.release()
            await node.broker.metadata.wait_for_revision(revision + 1)
            assert await topics(node) == after

    scenario()


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize(("request_", "outcomes", "after"), REQUESTS, ids=ids)
def test_a_request_with_timeout_0_is_not_started(
    tmp_path: Path, request_: Any, outcomes: str, after: dict[str, int], timeout_ms: int
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            revision = node.store.revision
            request_.timeout_ms = timeout_ms
            found = getattr(await node.ask(request_), outcomes)
            assert {each.error_code for each in found} == {ErrorCode.REQUEST_TIMED_OUT}
            await node.create(new_topic("behind"))
            assert node.store.revision == revision + 1
            assert await topics(node) == {"t": 1, "behind": 1}

    scenario()
