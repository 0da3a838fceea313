"""Unusual requests get the same responses as from Apache Kafka; found by the differential test."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node

UNKNOWN_ID = b"u" * 16


def produce_request(*partitions: tuple[str, bytes], acks: int = -1) -> ProduceRequest:
    """Build a batch for partition 0 of each topic."""
    topics = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(0, r)]) for name, r in partitions
    ]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


async def produced(node: RunningNode, request: ProduceRequest) -> list[tuple[str, int]]:
    """Return (error, log start offset) of each partition."""
    response = await node.ask(request, 12)
    answers = [answer for topic in response.responses for answer in topic.partition_responses]
    return [(ErrorCode(answer.error_code).name, answer.log_start_offset) for answer in answers]


@on_loop
async def test_one_transactional_batch_without_a_transactional_id_fails_the_whole_request(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"), new_topic("other"))
        transactional = bytes(
            batch(b"v", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
        )
        found = await produced(node, produce_request(("other", bytes(batch(b"v"))), ("t", transactional)))
        assert found == [("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", -1)] * 2
        assert node.partition("other").log.log_end_offset == 0


@on_loop
async def test_invalid_acks_are_an_error_if_the_request_has_partitions(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        found = await produced(
            node, produce_request(*((name, bytes(batch(b"v"))) for name in ("t", "gone")), acks=2)
        )
        assert found == [("INVALID_REQUIRED_ACKS", -1), ("UNKNOWN_TOPIC_OR_PARTITION", -1)]


@on_loop
async def test_the_log_start_offset_is_returned_with_producer_errors_but_not_with_corruption(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"), new_topic("damaged"))
        for name in ("t", "damaged"):
            node.partition(name).append_as_leader(
                batch(b"1", producer_id=7, producer_epoch=0, base_sequence=0), 1
            )
            node.partition(name).delete_records(1)
        late = bytes(batch(b"v", producer_id=7, producer_epoch=0, base_sequence=5))
        damaged = bytearray(batch(b"v"))
        damaged[-1] ^= 1
        found = await produced(node, produce_request(("t", late), ("damaged", bytes(damaged))))
        assert found == [("OUT_OF_ORDER_SEQUENCE_NUMBER", 1), ("CORRUPT_MESSAGE", -1)]


def fetch_request(version: int, **fields: Any) -> tuple[FetchRequest, int]:
    partition = FetchPartition(partition_max_bytes=1000, **fields)
    return FetchRequest(
        max_bytes=1000, session_epoch=-1, topics=[FetchTopic("t", partitions=[partition])]
    ), version


async def fetched(node: RunningNode, request: FetchRequest, version: int) -> PartitionData:
    response = await node.ask(request, version)
    answer: PartitionData = response.responses[0].partitions[0]
    return answer


@on_loop
async def test_any_negative_leader_epoch_of_a_fetch_means_none(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        answer = await fetched(node, *fetch_request(12, current_leader_epoch=-2))
        assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [4, 12])
@on_loop
async def test_an_empty_name_is_an_unknown_topic_in_a_fetch_by_name(tmp_path: Path, version: int) -> None:
    async with running_node(tmp_path) as node:
        request = FetchRequest(topics=[FetchTopic("", partitions=[FetchPartition()])], session_epoch=-1)
        answer = await fetched(node, request, version)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert answer.aborted_transactions == []


@on_loop
async def test_aborted_transactions_are_null_for_a_partition_with_an_error(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        answer = await fetched(node, *fetch_request(11, fetch_offset=9))
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert answer.aborted_transactions is None


@on_loop
async def test_an_unknown_isolation_level_is_an_invalid_request(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        fetch, version = fetch_request(7)
        fetch.isolation_level = 2
        assert (await node.ask(fetch, version)).error_code == ErrorCode.INVALID_REQUEST
        topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0)])]
        answer = await node.ask(ListOffsetsRequest(-1, isolation_level=-1, topics=topics))
        assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


@on_loop
async def test_a_duplicate_topic_is_returned_once(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 2))
        node.partition("t").append_as_leader(batch(b"1", b"2"), 1)
        requested_topics = [
            ListOffsetsTopic("t", [ListOffsetsPartition(index, timestamp=-1)]) for index in (0, 1, 1)
        ]
        [offsets] = (await node.ask(ListOffsetsRequest(replica_id=-1, topics=requested_topics))).topics
        assert [(each.partition_index, each.offset) for each in offsets.partitions] == [(0, 2), (1, -1)]
        deletions = [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, offset)]) for offset in (2, 1)]
        [deleted] = (await node.ask(DeleteRecordsRequest(topics=deletions))).topics
        assert [each.low_watermark for each in deleted.partitions] == [1]


@on_loop
async def test_a_leaders_epoch_starts_before_its_first_append(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        topics = [OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, -1, leader_epoch=0)])]
        answer = await node.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics))
        [end] = answer.topics[0].partitions
        assert (end.leader_epoch, end.end_offset) == (0, 0)


@on_loop
async def test_one_topic_id_makes_metadata_a_request_by_id(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"), new_topic("named"))
        asked = [("named", ZERO_UUID), (None, node.topic_id("t")), ("named", UNKNOWN_ID), (None, UNKNOWN_ID)]
        topics = [MetadataRequestTopic(topic_id, name) for name, topic_id in asked]
        answer = await node.ask(MetadataRequest(topics))
        found = [(topic.name, ErrorCode(topic.error_code).name) for topic in answer.topics]
        assert found == [("t", "NONE"), (None, "UNKNOWN_TOPIC_ID")]


@on_loop
async def test_metadata_without_support_for_ids_has_no_null_names(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        answer = await node.ask(MetadataRequest([MetadataRequestTopic(UNKNOWN_ID, None)]), 11)
        [topic] = answer.topics
        assert (topic.name, topic.error_code) == ("", ErrorCode.INVALID_REQUEST)


@on_loop
async def test_metadata_of_a_topic_without_name_and_id_is_an_invalid_request(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        answer = await node.ask(
            MetadataRequest([MetadataRequestTopic(name="t"), MetadataRequestTopic(name=None)])
        )
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        named = [MetadataRequestTopic(node.topic_id("t"), None), MetadataRequestTopic(name=None)]
        assert [topic.name for topic in (await node.ask(MetadataRequest(named))).topics] == ["t"]


@pytest.mark.parametrize("values", [(None, "1000"), ("1000", None)])
@on_loop
async def test_a_null_config_is_an_error_even_beside_a_value(
    tmp_path: Path, values: tuple[str | None, ...]
) -> None:
    async with running_node(tmp_path) as node:
        configs = [CreatableTopicConfig("retention.ms", value) for value in values]
        answer = await node.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1, configs=configs)]))
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_CONFIG]


@pytest.mark.parametrize("limit", [0, -1])
@on_loop
async def test_a_page_has_at_least_one_partition(tmp_path: Path, limit: int) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 2))
        topics = [TopicRequest("t"), TopicRequest("unknown")]
        answer = await node.ask(DescribeTopicPartitionsRequest(topics, limit))
        assert [len(topic.partitions) for topic in answer.topics] == [1]
        assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("t", 1)
        answer = await node.ask(DescribeTopicPartitionsRequest(topics, limit, Cursor("t", 1)))
        assert answer.next_cursor.topic_name == "unknown"


@on_loop
async def test_a_cursor_must_name_a_requested_topic(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        answer = await node.ask(DescribeTopicPartitionsRequest([TopicRequest("t")], 9, Cursor("other", 0)))
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


@on_loop
async def test_an_unknown_resource_type_fails_the_whole_request(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        resources = [DescribeConfigsResource(resource_type, "t") for resource_type in (2, 3)]
        answer = await node.ask(DescribeConfigsRequest(resources))
        assert [result.error_code for result in answer.results] == [ErrorCode.INVALID_REQUEST] * 2


@on_loop
async def test_invalid_assignments_are_reported_before_too_many_partitions(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        answer = await node.ask(CreatePartitionsRequest([CreatePartitionsTopic("t", 20_000, [])], 1000))
        assert answer.results[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@on_loop
async def test_produce_is_advertised_from_version_0_for_librdkafka(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        answer = await node.ask(ApiVersionsRequest("client", "1"))
        named = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        assert named[ProduceRequest.API_KEY] == (0, 13)
