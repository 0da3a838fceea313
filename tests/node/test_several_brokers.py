"""What clients of one broker see of the others, over real sockets."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import METADATA_TOPIC
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker, EmbeddedCluster
from barnabas.wire.barnabas_messages.describe_trash import DescribeTrashRequest
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import ProduceResponse
from support.batches import batch
from support.quotas import quota
from support.waiting import until
from support.wire import Wire, produce_request

LATEST, EARLIEST = -1, -2

#: The replica id of debugging tools.
DEBUGGING = -2


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3, {"replica.lag.time.max.ms": "1000"}) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: EmbeddedCluster, request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    running.create_topic("t")
    running.produce("t", b"value")
    yield running
    running.rejoin()
    running.client.admin.delete_topics(["t"])
    until(lambda: all("t" not in broker.server.broker.image.topics for broker in running.brokers.values()))


def port_of(cluster: EmbeddedCluster, node_id: int) -> int:
    return int(cluster.brokers[node_id].bootstrap.rpartition(":")[2])


def leader_of(cluster: EmbeddedCluster) -> int:
    leader = cluster.leader("t")
    assert leader is not None
    return leader


def follower_of(cluster: EmbeddedCluster) -> int:
    return next(node_id for node_id in cluster.brokers if node_id != leader_of(cluster))


# Administration

#: With how many topics to repeat what fails only if another broker learns of a change late.
REPEATED_COUNT = 20


def test_each_broker_knows_at_once_what_another_one_has_changed(cluster: EmbeddedCluster) -> None:
    creator, changer, deleter = (broker.client.admin for broker in cluster.brokers.values())
    compact = [AlterConfigOp("cleanup.policy", OpType.SET, "compact")]
    for number in range(REPEATED_COUNT):
        name = f"changed-{number}"
        raise_errors(creator.create_topics([NewTopic(name, 1, 1)]).values())
        raise_errors(changer.alter_configs({Resource(ResourceKind.TOPIC, name): compact}).values())
        raise_errors(deleter.delete_topics([name]).values())
        again = creator.delete_topics([name])[name]
        assert isinstance(again, KafkaError)
        assert again.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise_errors(changer.create_topics([NewTopic(name, 2, 1)]).values())
        raise_errors(creator.delete_topics([name]).values())


# The controller


def test_every_broker_names_the_controller_as_the_only_voter(cluster: EmbeddedCluster) -> None:
    request = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])
    for node_id in cluster.brokers:
        with Wire(port_of(cluster, node_id)) as wire:
            response: DescribeQuorumResponse = wire.ask(request)
        [partition] = response.topics[0].partitions
        assert (partition.leader_id, [each.replica_id for each in partition.current_voters]) == (1, [1])
        [node] = response.nodes
        assert (node.node_id, node.listeners[0].port) == (1, port_of(cluster, 1))


# Leaders that die


def has_noticed(broker: EmbeddedBroker) -> bool:
    """Whether a broker has lost the connection to a leader that it follows."""
    noticed: list[bool] = []
    broker.call_soon(lambda: noticed.append(broker.server.parts.replica_fetchers.expects_election()))
    until(lambda: noticed)
    return noticed[0]


def test_metadata_right_after_a_leaders_death_names_the_next_one(cluster: EmbeddedCluster) -> None:
    leader, follower = leader_of(cluster), follower_of(cluster)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    with Wire(port_of(cluster, follower)) as wire:
        cluster.kill(leader)
        try:
            until(lambda: cluster.leader("t") != leader or has_noticed(cluster.brokers[follower]))
            [topic] = wire.ask(request).topics
            assert topic.partitions[0].leader_id in cluster.brokers.keys() - {leader}
        finally:
            cluster.restart(leader)


# Leader hints


def test_a_producer_learns_the_leader_from_another_broker(cluster: EmbeddedCluster) -> None:
    leader = leader_of(cluster)
    with Wire(port_of(cluster, follower_of(cluster))) as wire:
        response: ProduceResponse = wire.ask(produce_request("t", wire.topic_id("t"), batch(b"x")))
        [answer] = response.responses[0].partition_responses
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (leader, 0)
        [endpoint] = response.node_endpoints
        assert (endpoint.node_id, endpoint.port) == (leader, port_of(cluster, leader))

        old = wire.ask(produce_request("t", wire.topic_id("t"), batch(b"x")), 9)
        assert old.responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_consumer_learns_the_leader_from_a_broker_without_a_replica(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("one", replication_factor=1)
    leader = cluster.leader("one")
    assert leader is not None
    other = next(node_id for node_id in cluster.brokers if node_id != leader)
    with Wire(port_of(cluster, other)) as wire:
        response: FetchResponse = wire.ask(wire.fetch_request("one", 0))
        [data] = response.responses[0].partitions
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (leader, 0)
        assert [each.node_id for each in response.node_endpoints] == [leader]
        old = wire.ask(wire.fetch_request("one", 0), 15)
        assert old.responses[0].partitions[0].current_leader.leader_id == -1
    cluster.client.admin.delete_topics(["one"])


def test_a_request_to_the_leader_gets_no_hint(cluster: EmbeddedCluster) -> None:
    with Wire(port_of(cluster, leader_of(cluster))) as wire:
        response: ProduceResponse = wire.ask(produce_request("t", wire.topic_id("t"), batch(b"x"), None))
        assert response.node_endpoints == []
        assert wire.ask(wire.fetch_request("t", 99)).node_endpoints == []


# Offsets of followers


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, 0])
def test_only_debugging_tools_list_the_offsets_of_a_follower(
    cluster: EmbeddedCluster, timestamp: int
) -> None:
    with Wire(port_of(cluster, follower_of(cluster))) as wire:
        until(lambda: wire.list_offset("t", LATEST, replica_id=DEBUGGING).offset == 1)
        found = wire.list_offset("t", timestamp, replica_id=DEBUGGING)
        assert (found.error_code, found.offset) == (ErrorCode.NONE, 1 if timestamp == LATEST else 0)
        epoch = wire.list_offset("t", timestamp, replica_id=DEBUGGING, current_leader_epoch=99)
        assert epoch.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        for replica_id in (-1, leader_of(cluster)):
            refused = wire.list_offset("t", timestamp, replica_id=replica_id)
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_describes_the_producers_that_it_has_replicated(cluster: EmbeddedCluster) -> None:
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])

    def producers(node_id: int) -> list[tuple[int, int]]:
        with Wire(port_of(cluster, node_id)) as wire:
            [partition] = wire.ask(request).topics[0].partitions
        assert partition.error_code == ErrorCode.NONE
        return [(each.producer_id, each.last_sequence) for each in partition.active_producers]

    assert len(producers(leader_of(cluster))) == 1
    until(lambda: producers(follower_of(cluster)) == producers(leader_of(cluster)))


# Fetching from followers (KIP-392)


@pytest.fixture(scope="module")
def racks() -> Iterator[EmbeddedCluster]:
    settings = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with EmbeddedCluster(3, settings, racks=["a", "b", "c"]) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", b"value")
        yield cluster


def rack_of(node_id: int) -> str:
    return "abc"[node_id - 1]


def in_rack(request: FetchRequest, rack: str) -> FetchRequest:
    request.rack_id = rack
    return request


def test_a_consumer_is_sent_to_the_follower_in_its_rack_and_reads_there(racks: EmbeddedCluster) -> None:
    follower = follower_of(racks)
    with Wire(port_of(racks, leader_of(racks))) as wire:
        response: FetchResponse = wire.ask(in_rack(wire.fetch_request("t", 0), rack_of(follower)))
        [data] = response.responses[0].partitions
        assert (data.preferred_read_replica, data.records, data.high_watermark) == (follower, b"", 1)
    with Wire(port_of(racks, follower)) as wire:
        request = wire.fetch_request("t", 0, min_bytes=1, max_wait_ms=10_000)
        [data] = wire.ask(in_rack(request, rack_of(follower))).responses[0].partitions
        assert (data.error_code, data.preferred_read_replica) == (ErrorCode.NONE, -1)
        assert data.records
        assert wire.fetch("t", 5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("rack", ["own", "elsewhere", ""])
def test_a_consumer_reads_from_the_leader_if_no_follower_is_nearer(racks: EmbeddedCluster, rack: str) -> None:
    leader = leader_of(racks)
    with Wire(port_of(racks, leader)) as wire:
        request = in_rack(wire.fetch_request("t", 0), rack_of(leader) if rack == "own" else rack)
        [data] = wire.ask(request).responses[0].partitions
        assert data.preferred_read_replica == -1
        assert data.records


def test_a_follower_that_lacks_the_offset_is_not_preferred(racks: EmbeddedCluster) -> None:
    with Wire(port_of(racks, leader_of(racks))) as wire:
        request = in_rack(wire.fetch_request("t", 7), rack_of(follower_of(racks)))
        [data] = wire.ask(request).responses[0].partitions
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_new_records_reach_a_consumer_at_a_follower_without_the_wait_of_a_fetch(
    racks: EmbeddedCluster,
) -> None:
    settings = {
        "replica.fetch.wait.max.ms": "60000",
        "replica.socket.timeout.ms": "120000",
        "replica.lag.time.max.ms": "120000",
    }
    settings |= {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with EmbeddedCluster(2, settings, racks=["a", "b"]) as cluster:
        cluster.create_topic("t")
        with Wire(port_of(cluster, follower_of(cluster))) as wire:
            sent = wire.send(wire.fetch_request("t", 0, min_bytes=1, max_wait_ms=50_000))
            cluster.produce("t", b"value")
            [data] = wire.receive(FetchRequest, sent).responses[0].partitions
            assert data.records


def test_clients_of_old_versions_read_from_leaders(racks: EmbeddedCluster) -> None:
    with Wire(port_of(racks, follower_of(racks))) as wire:
        assert wire.fetch("t", 0, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# The high watermark of a new leader


def test_a_new_leader_has_no_latest_offset_until_it_knows_the_high_watermark(
    cluster: EmbeddedCluster,
) -> None:
    leader = leader_of(cluster)
    with Wire(port_of(cluster, leader)) as wire:
        partition = cluster.brokers[leader].server.broker.replicas.find("t", 0)
        assert partition is not None
        assert wire.list_offset("t", LATEST).offset == 1
        partition._epoch_start_offset = (
            2  # as if this broker had been elected with a record that others may lack
        )
        assert wire.list_offset("t", LATEST).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert wire.list_offset("t", LATEST, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert wire.list_offset("t", 2**50).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert wire.list_offset("t", EARLIEST).offset == 0
        cluster.produce("t", b"value")
        assert wire.list_offset("t", LATEST).offset == 2


# Deleted records


def delete_records(wire: Wire, offset: int, timeout_ms: int = 20_000) -> tuple[ErrorCode, int]:
    topic = DeleteRecordsTopic(
        name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
    )
    response: DeleteRecordsResponse = wire.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms))
    [result] = response.topics[0].partitions
    return ErrorCode(result.error_code), result.low_watermark


def start_offsets(cluster: EmbeddedCluster) -> list[int]:
    found = [broker.server.broker.replicas.find("t", 0) for broker in cluster.brokers.values()]
    return [partition.log.log_start_offset for partition in found if partition is not None]


def test_a_follower_has_no_quota(cluster: EmbeddedCluster) -> None:
    leader = leader_of(cluster)
    with Wire(port_of(cluster, leader)) as wire:
        request = wire.fetch_request("t", 0)
        wire.ask(quota({"client-id": "test"}, request_percentage=1e-6))
        request.replica_state.replica_id = follower_of(cluster)
        of_follower, of_client = wire.ask(request), wire.ask(MetadataRequest([]))
        wire.ask(quota({"client-id": "test"}, request_percentage=None))
    assert of_follower.throttle_time_ms == 0
    assert of_client.throttle_time_ms > 0


def test_records_are_deleted_on_all_in_sync_replicas(cluster: EmbeddedCluster) -> None:
    cluster.produce("t", b"value")
    with Wire(port_of(cluster, leader_of(cluster))) as wire:
        assert delete_records(wire, 1) == (ErrorCode.NONE, 1)
        assert start_offsets(cluster) == [1, 1, 1]
        assert delete_records(wire, -1) == (ErrorCode.NONE, 2)
        assert start_offsets(cluster) == [2, 2, 2]


def test_a_deletion_that_a_replica_has_not_copied_times_out_with_the_low_watermark(
    cluster: EmbeddedCluster,
) -> None:
    cluster.isolate(follower_of(cluster))
    with Wire(port_of(cluster, leader_of(cluster))) as wire:
        started_s = time.monotonic()
        assert delete_records(wire, 1, timeout_ms=50) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert time.monotonic() - started_s >= 0.05
        cluster.rejoin()
        assert delete_records(wire, 1) == (ErrorCode.NONE, 1)


def test_a_deletion_ends_when_a_replica_leaves_the_isr(cluster: EmbeddedCluster) -> None:
    cluster.isolate(follower_of(cluster))
    with Wire(port_of(cluster, leader_of(cluster))) as wire:
        wire.produce("t", batch(b"x"), acks=1)  # the follower lacks a record, so it lags
        assert delete_records(wire, 1) == (ErrorCode.NONE, 1)
        until(lambda: len(cluster.in_sync("t")) == 2)


# Unclean elections


@pytest.mark.parametrize(
    "resource",
    [Resource(ResourceKind.TOPIC, "t"), Resource(ResourceKind.BROKER, "")],
    ids=["topic", "cluster"],
)
def test_a_replica_that_is_not_in_sync_leads_when_that_is_allowed(resource: Resource) -> None:
    with EmbeddedCluster(2) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", b"on both")
        leader, follower = leader_of(cluster), follower_of(cluster)
        cluster.kill(follower)
        until(lambda: cluster.in_sync("t") == [leader])
        cluster.produce("t", b"on one")
        cluster.kill(leader)
        cluster.restart(follower)
        until(lambda: cluster.leader("t") is None)

        allow = [AlterConfigOp("unclean.leader.election.enable", OpType.SET, "true")]
        raise_errors(cluster.client.admin.alter_configs({resource: allow}).values())
        until(lambda: cluster.leader("t") == follower)
        with cluster.client.producer() as producer:  # a new one: the sequence of the other has a gap now
            producer.send_and_wait("t", b"after")
        cluster.restart(leader)
        until(lambda: len(cluster.in_sync("t")) == 2)
        assert [record.value for record in cluster.records("t", count=2)] == [b"on both", b"after"]


# Throttles of replication


def test_followers_copy_a_batch_at_a_time_if_responses_may_have_no_bytes() -> None:
    settings = {"replica.fetch.max.bytes": "0", "replica.fetch.response.max.bytes": "0"}
    with EmbeddedCluster(2, settings) as cluster:
        cluster.create_topic("t", partitions=2, replication_factor=2)
        for _ in range(3):
            for partition in range(2):
                cluster.produce("t", b"value", partition=partition)  # acknowledged by both
        assert cluster.in_sync("t") == [1, 2]


@pytest.mark.parametrize(
    ("replicas", "rate"),
    [
        ("leader.replication.throttled.replicas", "leader.replication.throttled.rate"),
        ("follower.replication.throttled.replicas", "follower.replication.throttled.rate"),
    ],
)
def test_a_throttled_reassignment_copies_no_faster_until_the_limit_is_raised(
    replicas: str, rate: str
) -> None:
    settings = {"replica.fetch.max.bytes": "10000", "replica.fetch.response.max.bytes": "10000"}
    with EmbeddedCluster(2, settings) as cluster:
        admin = cluster.client.admin

        def alter(kind: ResourceKind, name: str, key: str, value: str) -> None:
            edits = {Resource(kind, name): [AlterConfigOp(key, OpType.SET, value)]}
            raise_errors(admin.alter_configs(edits).values())

        cluster.create_topic("t", replication_factor=1)
        for _ in range(50):
            cluster.produce("t", b"x" * 10_000)
        leader, other = leader_of(cluster), follower_of(cluster)
        alter(ResourceKind.TOPIC, "t", replicas, "*")
        for node_id in (leader, other):
            alter(ResourceKind.BROKER, str(node_id), rate, "1000")  # at once ten times as much
        raise_errors(admin.alter_partition_reassignments({TopicPartition("t", 0): [leader, other]}).values())
        sessions = cluster.brokers[leader].server.broker.follower_sessions
        fetchers = cluster.brokers[other].server.parts.replica_fetchers

        def throttled_count() -> int:
            copying: dict[str, int] = fetchers.statistics().get(str(leader), {})  # type: ignore[assignment]
            return sessions.statistics()["throttled_count"] + copying.get("paused_count", 0)

        until(lambda: throttled_count() > 0)
        assert cluster.in_sync("t") == [leader]
        for node_id in (leader, other):
            alter(ResourceKind.BROKER, str(node_id), rate, "1000000000")
        until(lambda: len(cluster.in_sync("t")) == 2)


# The directory of the metadata


def test_brokers_that_share_the_directory_of_the_metadata_keep_the_use_of_acls_apart(tmp_path: Path) -> None:
    settings = {
        "metadata.log.dir": str(tmp_path),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with EmbeddedCluster(2, settings):
        pass
    assert {path.name for path in tmp_path.glob("acl-use*")} == {"acl-use-1.json", "acl-use-2.json"}


def test_the_sizes_of_topics_in_the_trash_are_those_on_all_brokers(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("trashed", partitions=2, replication_factor=1)
    for index in range(2):
        cluster.produce("trashed", b"x" * 1000, partition=index)
    cluster.client.admin.delete_topics(["trashed"])

    def sizes_bytes() -> list[int]:
        found = []
        for node_id in cluster.brokers:
            with Wire(port_of(cluster, node_id)) as wire:
                topics = wire.ask(DescribeTrashRequest()).topics
                found += [topic.size_bytes for topic in topics if topic.name == "trashed"]
        return found

    until(lambda: sum(map(bool, sizes_bytes())) == 2)
    [described] = [topic for topic in cluster.client.admin.describe_trash() if topic.name == "trashed"]
    assert described.size_bytes == sum(sizes_bytes())
