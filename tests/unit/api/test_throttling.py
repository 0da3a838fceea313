"""Quota use of requests, and throttle times in responses, on a frozen clock."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.log.append_info import AppendInfo
from barnabas.wire.barnabas_messages.describe_topic_offsets import DescribeTopicOffsetsRequest
from barnabas.wire.barnabas_messages.restore_topic_offsets import RestoreTopicOffsetsRequest
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from support.acls import EVERY_ACL
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import APIS, RunningNode, frame_of, running_node
from support.quotas import quota
from support.specification import ADMINISTRATIVE

ANONYMOUS = {"user": "ANONYMOUS"}


def produce(node: RunningNode, size_bytes: int = 1000, *, acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=bytes(batch(b"x" * size_bytes)))]
    topic_data = [TopicProduceData(name="t", topic_id=node.topic_id("t"), partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topic_data)


def fetch(node: RunningNode, **fields: Any) -> FetchRequest:
    partitions = [FetchPartition(partition=0, partition_max_bytes=1 << 20)]
    topics = [FetchTopic(topic="t", topic_id=node.topic_id("t"), partitions=partitions)]
    return FetchRequest(max_bytes=1 << 20, topics=topics, session_epoch=-1, **fields)


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_producer_above_its_quota_is_throttled_on_both_paths(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            await node.ask(quota(ANONYMOUS, producer_byte_rate=200.0))
            waits_ms = [(await node.ask(produce(node), version)).throttle_time_ms for _ in range(3)]
            assert waits_ms[0] == 0
            assert 0 < waits_ms[1] < waits_ms[2]
            assert node.partition("t").log.log_end_offset == 3
            await node.ask(quota(ANONYMOUS, producer_byte_rate=None))
            assert (await node.ask(produce(node), version)).throttle_time_ms == 0

    scenario()


def test_without_a_response_the_connection_is_muted(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            await node.ask(quota(ANONYMOUS, producer_byte_rate=1.0))
            frame = memoryview(bytearray(frame_of(produce(node, acks=0), 13)))
            context, request = node.dispatcher.parse(frame, node.connection)
            assert await node.dispatcher.respond(context, request) is None
            assert context.throttle_ms > 0

    scenario()


@pytest.mark.parametrize("version", [4, 12, 18])
def test_a_consumer_above_its_quota_gets_an_empty_throttled_response(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            await node.ask(produce(node, 3000))
            await node.ask(quota({"client-id": "test"}, consumer_byte_rate=500.0))
            first = await node.ask(fetch(node), version)
            assert (first.throttle_time_ms, len(first.responses)) == (0, 1)
            second = await node.ask(fetch(node), version)
            assert second.throttle_time_ms > 0
            assert (second.responses, second.error_code) == ([], ErrorCode.NONE)
            node.clock.advance(20_000)
            assert len((await node.ask(fetch(node), version)).responses) == 1

    scenario()


def test_a_response_is_not_larger_than_the_quota_allows(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            for _ in range(10):
                await node.ask(produce(node, 1000))
            await node.ask(quota({"client-id": "test"}, consumer_byte_rate=300.0))
            answer = await node.ask(fetch(node))
            assert answer.throttle_time_ms == 0
            assert 1000 < len(answer.responses[0].partitions[0].records) <= 3000

    scenario()


def test_followers_are_not_throttled(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            await node.ask(produce(node, 3000))
            await node.ask(quota({"user": None}, consumer_byte_rate=1.0))
            for _ in range(2):
                assert len((await node.ask(fetch(node, replica_id=2), 12)).responses) == 1

    scenario()


def test_requests_of_brokers_take_no_request_time(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            await node.ask(quota(ANONYMOUS, request_percentage=1e-6))
            assert (await node.ask(fetch(node, replica_id=2), 12)).throttle_time_ms == 0
            for request in (
                WriteTxnMarkersRequest(),
                DescribeTopicOffsetsRequest(),
                RestoreTopicOffsetsRequest(),
            ):
                await node.ask(request)
            assert node.broker.quotas.throttled_count == 0
            assert (await node.ask(fetch(node), 12)).throttle_time_ms > 0

    scenario()


def test_request_time_above_the_quota_is_throttled_including_errors(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.ask(quota(ANONYMOUS, request_percentage=1e-6))
            for request in (MetadataRequest(None), ApiVersionsRequest("bad name!", "")):
                answer = await node.ask(request)
                assert 0 < answer.throttle_time_ms <= 1000
            assert answer.error_code == ErrorCode.INVALID_REQUEST
            assert node.broker.quotas.statistics()["throttled_count"] >= 2

    scenario()


def test_a_failing_fast_path_counts_against_the_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            await node.ask(quota(ANONYMOUS, request_percentage=1e-6))
            monkeypatch.setattr(node.partition("t"), "append_as_leader", lambda *_: 1 / 0)
            answer = await node.ask(produce(node))
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert 0 < answer.throttle_time_ms <= 1000

    scenario()


def test_the_time_of_a_fast_path_before_it_waits_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t", configs={"flush.messages": "1"}))
            await node.ask(quota(ANONYMOUS, request_percentage=1.0))
            now_ns = 0

            def append(*arguments: Any) -> AppendInfo:
                nonlocal now_ns
                now_ns += 10**9
                return append_as_leader(*arguments)

            append_as_leader = node.partition("t").append_as_leader
            monkeypatch.setattr(node.dispatcher.statistics, "clock_ns", lambda: now_ns)
            monkeypatch.setattr(node.partition("t"), "append_as_leader", append)
            answer = await node.ask(produce(node))
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            assert answer.throttle_time_ms == 1000

    scenario()


@pytest.mark.parametrize("version", range(14))
def test_a_cached_response_has_each_clients_own_throttle_time(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            everything = MetadataRequest([] if version == 0 else None)
            free = await node.ask(everything, version)
            await node.ask(quota(ANONYMOUS, request_percentage=1e-6))
            throttled = await node.ask(everything, version)
            assert (throttled.throttle_time_ms > 0) == (version >= 3)
            assert (free.throttle_time_ms, free.brokers) == (0, throttled.brokers)

    scenario()


def creation(name: str, partitions: int = 20) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def test_changes_above_the_rate_are_errors_in_versions_that_have_the_error(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.ask(quota(ANONYMOUS, controller_mutation_rate=1.0))  # a bucket of eleven seconds
            assert (await node.ask(creation("a"))).topics[0].error_code == ErrorCode.NONE
            grown = CreatePartitionsRequest([CreatePartitionsTopic("a", 21, None)], 1000)
            deleted = DeleteTopicsRequest(topics=[DeleteTopicState("a")], timeout_ms=1000)
            for answer in (
                (created := await node.ask(creation("b"))),
                await node.ask(grown),
                await node.ask(deleted),
            ):
                [result] = (
                    getattr(answer, "topics", None) or getattr(answer, "results", None) or answer.responses
                )
                assert result.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
                assert answer.throttle_time_ms == 9000
            assert "9000 ms" in created.topics[0].error_message
            node.clock.advance(9000)
            assert (await node.ask(deleted)).responses[0].error_code == ErrorCode.NONE

    scenario()


def test_older_versions_apply_changes_and_are_throttled(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.ask(quota(ANONYMOUS, controller_mutation_rate=1.0))
            assert (await node.ask(creation("a"), 5)).throttle_time_ms == 9000
            grown = await node.ask(CreatePartitionsRequest([CreatePartitionsTopic("a", 21, None)], 1000), 2)
            assert (grown.results[0].error_code, grown.throttle_time_ms) == (ErrorCode.NONE, 10_000)
            deleted = await node.ask(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 4)
            assert (deleted.responses[0].error_code, deleted.throttle_time_ms) == (ErrorCode.NONE, 31_000)

    scenario()


def test_auto_creation_of_a_topic_counts(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, num_partitions="20") as node:
            await node.ask(quota(ANONYMOUS, controller_mutation_rate=1.0))
            answer = await node.ask(MetadataRequest([MetadataRequestTopic(name="new")]))
            assert answer.throttle_time_ms == 9000

    scenario()


def test_other_clients_quotas_cost_nothing(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"))
            await node.ask(quota({"user": "somebody"}, producer_byte_rate=1.0, request_percentage=1e-6))
            assert (await node.ask(produce(node), 13)).throttle_time_ms == 0
            assert (await node.ask(MetadataRequest(None))).throttle_time_ms == 0

    scenario()


def test_connections_are_counted_only_while_addresses_have_quotas(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            assert node.dispatcher.count_connection("10.0.0.1") == 0
            await node.ask(quota({"ip": "10.0.0.1"}, connection_creation_rate=1.0))
            waits_ms = [node.dispatcher.count_connection("10.0.0.1") for _ in range(11)]
            assert waits_ms == [0] * 10 + [1000]
            assert node.dispatcher.count_connection("10.0.0.2") == 0

    scenario()


@pytest.mark.parametrize("key", ADMINISTRATIVE)
def test_every_administrative_response_has_a_throttle_time(tmp_path: Path, key: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.ask(quota(ANONYMOUS, request_percentage=1e-6))
            request = APIS[key].request
            bare = request(**EVERY_ACL) if request is DescribeAclsRequest else request()
            answer = await node.ask(bare)
            assert 0 < answer.throttle_time_ms <= 1000

    scenario()
