import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.model import (
    HIGH_WATERMARK,
    CreatedTopic,
    NewTopic,
    config_entries,
    creatable_topic,
)
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import ConnectionLost, ThrottlingQuotaExceeded
from barnabas.client.core.metadata import TopicInfo
from barnabas.client.core.retry import Retry
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from barnabas.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.records.record import Record, encode_batch
from barnabas.wire.schema import Versions
from unit.client.fake_broker import HANG_UP, NODE_ID, FakeBroker

P0, P9, MISSING = TopicPartition("t", 0), TopicPartition("t", 9), TopicPartition("missing", 0)


def play(
    scenario: Callable[[FakeBroker, Admin], Awaitable[None]], versions: dict[Any, Versions] | None = None
) -> None:
    async def run() -> None:
        retry = Retry(first_ms=1, pause_ms_max=1, random=Random(1))
        async with FakeBroker(versions) as broker, ClusterClient(broker.bootstrap, retry=retry) as cluster:
            await asyncio.wait_for(scenario(broker, Admin(cluster)), 20)

    asyncio.run(run())


def code(outcome: object) -> ErrorCode | None:
    return outcome.code if isinstance(outcome, KafkaError) else None


def test_each_created_topic_has_its_own_result() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("old")
        outcomes = await admin.create_topics([NewTopic("new", 3), NewTopic("old")])
        created, refused = outcomes["new"], outcomes["old"]
        assert isinstance(created, CreatedTopic)
        assert (created.partitions, created.topic_id) == (3, broker.topics["new"].topic_id)
        assert code(refused) is ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(KafkaError, match="Topic 'old' already exists"):
            raise_errors(outcomes.values())

    play(scenario)


def test_a_throttled_change_has_the_throttle_time() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        throttled = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        created = CreatableTopicResult(name="t", error_code=throttled)
        broker.answer(CreateTopicsRequest, lambda _: CreateTopicsResponse(952, [created]))
        grown = CreatePartitionsTopicResult(name="t", error_code=throttled)
        broker.answer(CreatePartitionsRequest, lambda _: CreatePartitionsResponse(953, [grown]))
        deleted = DeletableTopicResult(name="t", error_code=throttled)
        broker.answer(DeleteTopicsRequest, lambda _: DeleteTopicsResponse(954, [deleted]))
        errors = [
            (await admin.create_topics([NewTopic("t")]))["t"],
            (await admin.create_partitions({"t": 2}))["t"],
            (await admin.delete_topics(["t"]))["t"],
        ]
        times_ms = [each.throttle_time_ms for each in errors if isinstance(each, ThrottlingQuotaExceeded)]
        assert times_ms == [952, 953, 954]

    play(scenario)


def test_validate_only_creates_nothing() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        raise_errors((await admin.create_topics([NewTopic("new")], validate_only=True)).values())
        assert broker.topics == {}

    play(scenario)


def test_assignments_and_configs_are_sent() -> None:
    topic = creatable_topic(NewTopic("t", configs={"retention.ms": "5"}, assignments={0: [1, 2], 1: [2, 1]}))
    assert [(each.partition_index, each.broker_ids) for each in topic.assignments] == [
        (0, [1, 2]),
        (1, [2, 1]),
    ]
    assert [(each.name, each.value) for each in topic.configs] == [("retention.ms", "5")]
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)


def test_an_error_of_a_former_controller_is_retried() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        moved = CreatableTopicResult(name="t", error_code=ErrorCode.NOT_CONTROLLER)
        broker.answer(CreateTopicsRequest, *[lambda _: CreateTopicsResponse(topics=[moved])] * 2)
        assert code((await admin.create_topics([NewTopic("t")]))["t"]) is None
        assert len(broker.received(CreateTopicsRequest)) == 3

    play(scenario)


def test_changes_are_not_repeated_when_their_response_is_lost() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.answer(DeleteTopicsRequest, lambda _: HANG_UP)
        with pytest.raises(ConnectionLost):
            await admin.delete_topics(["t"])
        assert len(broker.received(DeleteTopicsRequest)) == 1

    play(scenario)


@pytest.mark.parametrize("versions", [None, {DeleteTopicsRequest: Versions(0, 5)}])
def test_topics_are_deleted_by_name_on_new_and_old_brokers(versions: dict[Any, Versions] | None) -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("t")
        outcomes = await admin.delete_topics(["t", "missing"])
        assert outcomes["t"] is None
        assert code(outcomes["missing"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert broker.topics == {}

    play(scenario, versions)


def test_partitions_are_added_up_to_a_total() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("t")
        assert await admin.create_partitions({"t": 3}, assignments={"t": [[1], [1]]}) == {"t": None}
        assert len(broker.topics["t"].logs) == 3
        (request,) = broker.received(CreatePartitionsRequest)
        assert [each.broker_ids for each in request.topics[0].assignments] == [[1], [1]]
        assert code((await admin.create_partitions({"t": 2}))["t"]) is ErrorCode.INVALID_PARTITIONS

    play(scenario)


def test_topics_are_described_by_name_or_all() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("b", 2)
        broker.create("a")
        assert list(await admin.describe_topics()) == ["a", "b"]
        described = await admin.describe_topics(["b", "missing"])
        assert isinstance(described["b"], TopicInfo)
        assert len(described["b"].partitions) == 2
        assert code(described["missing"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(scenario)


def test_configs_have_sources_and_a_broker_describes_its_own() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("t")
        topic, missing = Resource(ResourceKind.TOPIC, "t"), Resource(ResourceKind.TOPIC, "missing")
        node = Resource(ResourceKind.BROKER, str(NODE_ID))
        outcomes = await admin.describe_configs([topic, missing, node], ["retention.ms"])
        configs = outcomes[topic]
        assert isinstance(configs, list)
        assert (configs[0].name, configs[0].value) == ("retention.ms", "1000")
        assert configs[0].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        assert code(outcomes[missing]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert isinstance(outcomes[node], list)
        assert [each.resources[0].configuration_keys for each in broker.received(DescribeConfigsRequest)] == [
            ["retention.ms"]
        ] * 2

    play(scenario)


def test_an_unknown_config_source_is_not_an_error() -> None:
    config = DescribeConfigsResourceResult(name="k", value="v", config_source=99)
    entries = config_entries(DescribeConfigsResult(configs=[config]))
    assert isinstance(entries, list)
    assert entries[0].source is ConfigSource.UNKNOWN


def test_offsets_are_listed_by_spec_with_errors_per_partition() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("t")
        broker.append("t", 0, encode_batch([Record(0, 100, None, b"a"), Record(0, 200, None, b"b")]))
        for spec, expected in ((EARLIEST, 0), (LATEST, 2), (OffsetSpec.at(150), 1), (OffsetSpec.at(201), -1)):
            outcome = (await admin.list_offsets({P0: spec}))[P0]
            assert isinstance(outcome, ListedOffset)
            assert outcome.offset == expected
        outcomes = await admin.list_offsets(dict.fromkeys([P0, P9, MISSING], LATEST))
        assert isinstance(outcomes[P0], ListedOffset)
        assert code(outcomes[P9]) is code(outcomes[MISSING]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(scenario)


def moved(request: Any) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])


def test_offsets_of_a_moved_partition_are_requested_again() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("t")
        broker.answer(ListOffsetsRequest, moved, moved)
        assert isinstance((await admin.list_offsets({P0: LATEST}))[P0], ListedOffset)

    play(scenario)


def test_offsets_of_a_partition_that_keeps_moving_are_an_error() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("t")
        broker.answer(ListOffsetsRequest, *[moved] * 500)
        admin.cluster.retry.timeout_ms = 20
        assert code((await admin.list_offsets({P0: LATEST}))[P0]) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    play(scenario)


def test_records_are_deleted_before_an_offset_or_all() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.create("t")
        broker.append("t", 0, encode_batch([Record(0, 1, None, b"v")] * 5))
        assert await admin.delete_records({P0: 2}) == {P0: 2}
        assert await admin.delete_records({P0: HIGH_WATERMARK}) == {P0: 5}
        outcomes = await admin.delete_records({P0: 9, MISSING: 1})
        assert code(outcomes[P0]) is ErrorCode.OFFSET_OUT_OF_RANGE
        assert code(outcomes[MISSING]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(scenario)


def test_the_cluster_is_described() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        description = await admin.describe_cluster()
        assert (description.cluster_id, description.controller_id) == ("fake", NODE_ID)
        assert [node.address.port for node in description.nodes] == [broker.port]
        denied = DescribeClusterResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="no"
        )
        broker.answer(DescribeClusterRequest, lambda _: denied)
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED: no"):
            await admin.describe_cluster()

    play(scenario)


def test_brokers_without_describe_cluster_are_described_from_metadata() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        assert (await admin.describe_cluster()).controller_id == NODE_ID
        assert broker.received(DescribeClusterRequest) == []

    play(scenario, {DescribeClusterRequest: Versions(90, 91)})


def test_any_request_can_be_sent_and_is_repeated_after_a_lost_connection() -> None:
    async def scenario(broker: FakeBroker, admin: Admin) -> None:
        broker.answer(DescribeClusterRequest, lambda _: HANG_UP)
        response = await admin.send(DescribeClusterRequest(), NODE_ID)
        assert isinstance(response, DescribeClusterResponse)

    play(scenario)
