import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordinator.partition_of import partition_of
from barnabas.metadata.decision import Decision
from barnabas.metadata.topics import NO_LEADER, PARTITION_STATES, PartitionRegistration, partition_key
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

HERE = ("host1", 9092)


async def found(node: RunningNode, *keys: str, key_type: int = 0, version: int = 6) -> list[tuple[Any, ...]]:
    """Return (error, broker, host, port) for each key."""
    if version >= 4:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        answers = (await node.ask(request, version)).coordinators
        assert [answer.key for answer in answers] == list(keys)
    else:
        answers = [
            await node.ask(FindCoordinatorRequest(key=key, key_type=key_type), version) for key in keys
        ]
    return [(answer.error_code, answer.node_id, answer.host, answer.port) for answer in answers]


@pytest.mark.parametrize("version", range(7))
def test_the_groups_coordinator_leads_its_partition(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            assert await found(node, "g", "", "größe", version=version) == [(0, 1, *HERE)] * 3
            assert list(node.broker.image.topics) == ["__consumer_offsets"]
            assert node.partition("__consumer_offsets", 49).log.config.cleanup_policy == {"compact"}

    scenario()


@on_loop
async def test_transactions_have_their_own_topic(tmp_path: Path) -> None:
    async with running_node(tmp_path, transaction_state_log_num_partitions="3") as node:
        assert await found(node, "tx", key_type=1) == [(0, 1, *HERE)]
        [topic] = node.broker.image.topics.values()
        assert (topic.name, topic.partition_count) == ("__transaction_state", 3)


@on_loop
async def test_one_version_returned_a_message_without_an_error(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        messages = {
            version: (await node.ask(FindCoordinatorRequest(key="g"), version)).error_message
            for version in (0, 1, 3)
        }
        assert messages == {0: "", 1: "NONE", 3: "NONE"}


@on_loop
async def test_a_manually_created_topic_determines_the_partition_count(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("__consumer_offsets", 2))
        assert await found(node, "g", "h") == [(0, 1, *HERE)] * 2
        topic = node.broker.image.topics["__consumer_offsets"]
        state = PartitionRegistration(NO_LEADER, 1, (), 1, (1,))
        change = PARTITION_STATES.put(partition_key(topic.topic_id, partition_of("g", 2)), state)
        await node.broker.metadata.write(lambda image: Decision(None, (change,)))
        nobody = (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
        assert partition_of("h", 2) != partition_of("g", 2)
        assert await found(node, "g", "h") == [nobody, (0, 1, *HERE)]


@on_loop
async def test_concurrent_requests_create_one_topic(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        assert (
            await asyncio.gather(*(found(node, f"g{number}") for number in range(5))) == [[(0, 1, *HERE)]] * 5
        )


@on_loop
async def test_when_topic_creation_fails_clients_get_a_retriable_error_with_the_reason(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, offsets_topic_replication_factor="2") as node:
        [answer] = (await node.ask(FindCoordinatorRequest(coordinator_keys=["g"]))).coordinators
        assert (answer.error_code, answer.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        assert "Topic __consumer_offsets cannot be created: A replication factor of 2" in answer.error_message
        assert "replication factor" in answer.error_message.lower()
        assert not list(node.broker.image.topics)


@pytest.mark.parametrize("version", range(1, 7))
def test_an_unknown_key_type_is_rejected(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            refused = (ErrorCode.INVALID_REQUEST, -1, "", -1)
            assert await found(node, "g", "h", key_type=9, version=version) == [refused] * 2

    scenario()


@pytest.mark.parametrize(
    ("version", "key", "code"),
    [
        (5, "g:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.INVALID_REQUEST),
        (6, "g:AAAAAAAAAAAAAAAAAAAAAQ:0", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (6, "g", ErrorCode.INVALID_REQUEST),
        (6, "g:short:0", ErrorCode.INVALID_REQUEST),
        (6, "g:AAAAAAAAAAAAAAAAAAAAAQ:first", ErrorCode.INVALID_REQUEST),
    ],
)
def test_share_groups_have_no_coordinator(tmp_path: Path, version: int, key: str, code: ErrorCode) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            assert await found(node, key, key_type=2, version=version) == [(code, -1, "", -1)]

    scenario()
