"""Auto-creation, all topics versus none, and the cached encoded response on all topics."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.brokers import decide_register
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from support.images import broker, new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node


def metadata_request(*names: str, create: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def codes(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize(
    ("broker_allows", "request_allows", "created"),
    [("true", True, True), ("true", False, False), ("false", True, False), ("false", False, False)],
)
def test_a_topic_is_created_when_both_broker_and_request_allow_it(
    tmp_path: Path, broker_allows: str, request_allows: bool, created: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        settings = {"auto_create_topics_enable": broker_allows, "num_partitions": "3"}
        async with running_node(tmp_path, **settings) as node:
            response = await node.ask(metadata_request("new", "bad name", create=request_allows))
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes(response) == {"new": unknown, "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION}
            assert ("new" in node.broker.image.topics) is created
            [topic] = (await node.ask(metadata_request("new"))).topics
            assert topic.error_code == (ErrorCode.NONE if created else unknown)
            if created:
                assert len(topic.partitions) == 3
                assert topic.topic_id == node.topic_id("new")

    scenario()


@on_loop
async def test_concurrent_requests_create_a_topic_once(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        answers = await asyncio.gather(*(node.ask(metadata_request("new", create=True)) for _ in range(3)))
        assert [codes(answer) for answer in answers] == [{"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}] * 3
        assert codes(await node.ask(metadata_request("new", create=True))) == {"new": ErrorCode.NONE}


@on_loop
async def test_before_version_4_every_request_allows_creation(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.ask(metadata_request("new"), 3)
        assert codes(await node.ask(metadata_request("new"), 3)) == {"new": ErrorCode.NONE}


@on_loop
async def test_topics_of_coordinators_are_created_with_their_configs(tmp_path: Path) -> None:
    async with running_node(tmp_path, offsets_topic_num_partitions="4") as node:
        first = await node.ask(metadata_request("__consumer_offsets", "other", create=True))
        assert [(topic.error_code, topic.is_internal) for topic in first.topics] == [
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        ]
        response = await node.ask(metadata_request("__consumer_offsets", "other", create=True))
        made = {topic.name: (topic.is_internal, len(topic.partitions)) for topic in response.topics}
        assert made == {"__consumer_offsets": (True, 4), "other": (False, 1)}
        assert node.partition("__consumer_offsets").log.config.cleanup_policy == {"compact"}


@on_loop
async def test_a_colliding_name_is_not_created(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a.b"))
        response = await node.ask(metadata_request("a_b", create=True))
        assert codes(response) == {
            "a_b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }  # Kafka's message, too, says no more
        assert set(node.broker.image.topics) == {"a.b"}


@pytest.mark.parametrize(
    ("version", "topics", "expected"),
    [(0, [], {"a", "b"}), (1, [], set()), (1, None, {"a", "b"}), (12, None, {"a", "b"}), (12, [], set())],
)
def test_all_topics_and_none_are_distinct(
    tmp_path: Path, version: int, topics: list[Any] | None, expected: set[str]
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("a"), new_topic("b"))
            assert set(codes(await node.ask(MetadataRequest(topics=topics), version))) == expected

    scenario()


@on_loop
async def test_topics_are_found_by_id(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        ids = [node.topic_id("a"), b"?" * 16]
        topics = [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
        response = await node.ask(MetadataRequest(topics=topics), 12)
        assert codes(response) == {"a": ErrorCode.NONE, None: ErrorCode.UNKNOWN_TOPIC_ID}
        assert [topic.topic_id for topic in response.topics] == ids


async def everything(node: RunningNode, version: int = 12, **flags: bool) -> MetadataResponse:
    response: MetadataResponse = await node.ask(MetadataRequest(topics=None, **flags), version)
    return response


@on_loop
async def test_the_response_on_all_topics_is_encoded_once_per_image(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        assert set(codes(await everything(node))) == {"a"}
        [(revision, body)] = node.broker.metadata_responses.values()
        await everything(node)
        assert node.broker.metadata_responses[next(iter(node.broker.metadata_responses))][1] is body
        await node.create(new_topic("b"))
        assert set(codes(await everything(node))) == {"a", "b"}
        [(later, _)] = node.broker.metadata_responses.values()
        assert later > revision


@on_loop
async def test_different_responses_are_cached_separately_up_to_a_limit(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        for version in range(1, 14):
            for flag in (False, True):
                response = await everything(
                    node, version, include_topic_authorized_operations=flag and version >= 8
                )
                operations = response.topics[0].topic_authorized_operations
                assert (operations != -(2**31)) is (flag and version >= 8)
        assert len(node.broker.metadata_responses) <= 16


@on_loop
async def test_clients_see_unfenced_brokers_on_their_own_listener(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        for joining in (broker(2), broker(3, fenced=True)):
            await node.broker.metadata.write(
                lambda image, joining=joining: decide_register(image.brokers, joining)
            )
        assert [found.node_id for found in (await everything(node)).brokers] == [1, 2]
        node.connection.listener = "OTHER"
        assert (await everything(node)).brokers == []


@on_loop
async def test_topics_are_described_once_an_expected_election_is_over(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        is_electing = True
        node.broker.expects_election = lambda: is_electing
        waiting = [
            asyncio.ensure_future(answer) for answer in (everything(node), node.ask(metadata_request("a")))
        ]
        assert (await node.ask(metadata_request())).topics == []
        assert not any(answer.done() for answer in waiting)
        is_electing = False
        assert [codes(answer) for answer in await asyncio.gather(*waiting)] == [{"a": ErrorCode.NONE}] * 2
