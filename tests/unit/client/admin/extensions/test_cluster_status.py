"""Merging the reports of brokers."""

from dataclasses import replace

import pytest

from barnabas.base.store_member import StoreMember
from barnabas.client.admin.extensions.cluster_status import (
    BrokerLiveness,
    BrokerReport,
    BrokerStatus,
    ClusterStatus,
    MetadataState,
    NoReport,
    Registration,
    compare_metadata,
    merge_status,
    parse_status_response,
    reference_broker,
)
from barnabas.client.admin.model import ClusterDescription
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.metadata import Node, PartitionInfo, TopicInfo
from barnabas.wire.barnabas_messages.describe_cluster_status import (
    DescribeClusterStatusResponse,
    MetadataHash,
    MetadataStoreMember,
    RegisteredBroker,
)
from barnabas.wire.errors import ErrorCode, KafkaError

NODES = tuple(Node(number, BrokerAddress("h", 9090 + number), "abc"[number - 1]) for number in (3, 1, 2))
CLUSTER = ClusterDescription("id", 1, NODES)
LIVE = {number: Registration(10 + number, False, True, 100 * number) for number in (1, 2, 3)}
REPORT = BrokerReport("1.0", "sqlite", 7, {6: b"six", 7: b"seven"}, LIVE, 1000, 10, 20)
REPORTS: dict[int, BrokerReport | NoReport] = dict.fromkeys((1, 2, 3), REPORT)


def topic(name: str, *partitions: tuple[int, tuple[int, ...], tuple[int, ...]]) -> TopicInfo:
    """Return a topic with partitions of (leader, replicas, ISR)."""
    infos = [
        PartitionInfo(index, leader, 0, replicas, isr, ())
        for index, (leader, replicas, isr) in enumerate(partitions)
    ]
    return TopicInfo(name, b"", False, tuple(infos))


def broker(status: ClusterStatus, node_id: int) -> BrokerStatus:
    [found] = [each for each in status.brokers if each.node_id == node_id]
    return found


def test_a_healthy_cluster_has_no_problems_and_each_broker_its_load() -> None:
    topics = [topic("t", (1, (1, 2), (1, 2)), (2, (2, 3), (3, 2)))]
    status = merge_status(CLUSTER, topics, {}, REPORTS)
    assert (status.problems, status.unhealthy) == ([], ())
    assert (status.cluster_id, status.controller_id, status.store, status.revision) == ("id", 1, "sqlite", 7)
    assert status.partitions_count == 2
    assert [(each.node_id, each.leaders_count, each.replicas_count) for each in status.brokers] == [
        (1, 1, 1),
        (2, 1, 2),
        (3, 0, 1),
    ]
    assert broker(status, 2) == BrokerStatus(
        node_id=2,
        address=BrokerAddress("h", 9092),
        rack="b",
        state=BrokerLiveness.LIVE,
        reason="",
        software_version="1.0",
        epoch=12,
        has_session=True,
        since_ms=200,
        revision=7,
        metadata_hash=b"seven".hex(),
        metadata_state=MetadataState.SAME,
        leaders_count=1,
        replicas_count=2,
        log_bytes=1000,
        in_bytes_per_second=10,
        out_bytes_per_second=20,
    )


def test_a_broker_that_does_not_respond_does_not_hide_the_others() -> None:
    status = merge_status(CLUSTER, [], {}, {**REPORTS, 1: NoReport("no response within 2000 ms")})
    silent = broker(status, 1)
    assert (silent.state, silent.metadata_state) == (BrokerLiveness.UNREACHABLE, MetadataState.UNKNOWN)
    assert (silent.software_version, silent.epoch, silent.log_bytes) == (None, 11, None)
    assert broker(status, 2).state is BrokerLiveness.LIVE
    assert status.problems == ["broker 1 does not respond: no response within 2000 ms"]


def test_a_fenced_broker_need_not_be_asked_and_has_the_time_of_its_fencing() -> None:
    fenced = {**LIVE, 3: Registration(13, True, False, 900)}
    earlier = replace(REPORT, registrations={**LIVE, 3: Registration(13, True, False, 850)})
    late = replace(REPORT, registrations={**LIVE, 3: Registration(13, True, False, None)})
    reports = {1: replace(REPORT, registrations=fenced), 2: earlier, 4: late, 5: REPORT}
    status = merge_status(replace_fenced({3}), [], {}, reports)
    dead = broker(status, 3)
    assert (dead.state, dead.has_session, dead.since_ms) == (BrokerLiveness.FENCED, False, 850)
    assert status.problems == ["broker 3 is fenced"]


def replace_fenced(fenced: set[int]) -> ClusterDescription:
    return CLUSTER._replace(fenced=frozenset(fenced))


def test_a_live_broker_without_a_session_is_a_problem() -> None:
    registrations = {**LIVE, 2: Registration(12, False, False, 200)}
    reports = {**REPORTS, 1: replace(REPORT, registrations=registrations)}
    assert merge_status(CLUSTER, [], {}, reports).problems == ["broker 2 has no session, and will be fenced"]


def test_partitions_are_counted_by_state_and_the_worst_come_first() -> None:
    topics = [
        topic("a", (1, (1, 2, 3), (1, 2)), (1, (1, 2, 3), (1,)), (1, (1,), (1,))),
        topic("b", (-1, (3,), (3,)), (1, (1, 2), (1,))),
    ]
    status = merge_status(CLUSTER, topics, {"a": 2, "b": 2}, REPORTS)
    assert [(each.topic, each.partition, each.states) for each in status.unhealthy] == [
        ("b", 0, ("offline",)),
        ("a", 1, ("under-min-isr", "under-replicated")),
        ("b", 1, ("under-min-isr", "under-replicated")),
        ("a", 0, ("under-replicated",)),
    ]
    assert (status.offline_count, status.under_min_isr_count, status.under_replicated_count) == (1, 2, 3)
    assert status.problems == [
        "1 partition is offline",
        "2 partitions are under min.insync.replicas",
        "3 partitions are under-replicated",
    ]


def test_a_partition_whose_min_isr_is_not_known_is_not_under_it() -> None:
    status = merge_status(CLUSTER, [topic("a", (1, (1, 2), (1,)))], {}, REPORTS)
    assert [each.states for each in status.unhealthy] == [("under-replicated",)]


def test_brokers_of_apache_kafka_show_what_the_standard_apis_know() -> None:
    reports = {1: BrokerReport(log_bytes=5), 2: BrokerReport(log_bytes=6), 3: NoReport("refused")}
    status = merge_status(CLUSTER, [], {}, reports)
    assert (status.store, status.revision) == (None, None)
    one = broker(status, 1)
    assert (one.state, one.log_bytes, one.has_session) == (BrokerLiveness.LIVE, 5, None)
    assert (one.epoch, one.metadata_state) == (None, MetadataState.UNKNOWN)
    assert status.problems == ["broker 3 does not respond: refused"]


def test_different_metadata_are_found_at_the_latest_common_revision() -> None:
    different = replace(REPORT, revision=6, hashes={5: b"five", 6: b"other"})
    behind = replace(REPORT, revision=4, hashes={3: b"three", 4: b"four"})
    status = merge_status(CLUSTER, [], {}, {1: REPORT, 2: different, 3: behind})
    assert [each.metadata_state.value for each in status.brokers] == ["same", "different", "behind"]
    assert status.problems == [
        "broker 2 has different metadata",
        "broker 3 is behind with the metadata, at revision 4",
    ]


@pytest.mark.parametrize(
    ("reference", "other", "state"),
    [
        ({1: b"a"}, {1: b"a"}, MetadataState.SAME),
        ({1: b"a", 2: b"b"}, {1: b"a"}, MetadataState.SAME),
        ({1: b"a", 2: b"b"}, {1: b"a", 2: b"c", 3: b"d"}, MetadataState.DIFFERENT),
        ({2: b"b"}, {1: b"a"}, MetadataState.BEHIND),
        ({}, {1: b"a"}, MetadataState.UNKNOWN),
        ({1: b"a"}, {}, MetadataState.UNKNOWN),
    ],
)
def test_hashes_are_compared(
    reference: dict[int, bytes], other: dict[int, bytes], state: MetadataState
) -> None:
    assert compare_metadata(reference, other) is state


def test_the_latest_view_counts_and_among_equals_that_of_the_controller() -> None:
    reports = {1: REPORT, 2: REPORT, 3: replace(REPORT, revision=8), 4: NoReport("")}
    assert reference_broker(reports, 2) == 3
    assert reference_broker({1: REPORT, 2: REPORT}, 2) == 2
    assert reference_broker({1: REPORT, 2: REPORT}, 9) == 1
    assert reference_broker({4: NoReport("")}, 4) is None


def test_a_response_is_parsed() -> None:
    response = DescribeClusterStatusResponse(
        software_version="1.0",
        store="sqlite",
        revision=7,
        hashes=[MetadataHash(6, b"six"), MetadataHash(7, b"seven")],
        brokers=[RegisteredBroker(1, 11, False, True, 100), RegisteredBroker(2, 12, True, False)],
        log_bytes=1000,
        in_bytes_per_second=10,
    )
    registrations = {1: Registration(11, False, True, 100), 2: Registration(12, True, False, None)}
    assert parse_status_response(response) == BrokerReport(
        "1.0", "sqlite", 7, {6: b"six", 7: b"seven"}, registrations, 1000, 10, None
    )
    refused = DescribeClusterStatusResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError):
        parse_status_response(refused)


def test_an_unavailable_member_of_the_store_is_a_problem() -> None:
    serves = StoreMember("http://h1:2379", "a", "leader", "3.5.1", 1024, "")
    fails = StoreMember("http://h2:2379", "b", None, "", None, "Connection refused")
    view = replace(REPORT, revision=8, store_members=(serves, fails))
    status = merge_status(CLUSTER, [], {}, {**REPORTS, 2: view})
    assert status.store_members == (serves, fails)
    assert status.problems == ["the metadata store at http://h2:2379 is unavailable: Connection refused"]


def test_the_members_of_the_store_are_read_from_a_report() -> None:
    members = [
        MetadataStoreMember("http://h1:2379", "a", "leader", "3.5.1", 1024, ""),
        MetadataStoreMember("http://h2:2379", reason="timeout"),
    ]
    report = parse_status_response(DescribeClusterStatusResponse(store_members=members))
    assert report.store_members == (
        StoreMember("http://h1:2379", "a", "leader", "3.5.1", 1024, ""),
        StoreMember("http://h2:2379", "", None, "", None, "timeout"),
    )
