"""Replication, failover and their effects on clients, in an embedded cluster of real brokers."""

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.extensions.trash import Trashed
from barnabas.client.admin.group_messages import OffsetAndMetadata
from barnabas.testing import EmbeddedCluster
from barnabas.wire.errors import ErrorCode, KafkaError
from support.waiting import until


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as running:
        yield running


def values(cluster: EmbeddedCluster, topic: str, count: int) -> list[bytes | None]:
    return [record.value for record in cluster.records(topic, count=count)]


def logs(cluster: EmbeddedCluster, topic: str, partition: int = 0) -> dict[int, bytes]:
    """Return the content of a partition's log on each broker."""
    return {
        node_id: b"".join(
            path.read_bytes() for path in sorted((broker.directory / f"{topic}-{partition}").glob("*.log"))
        )
        for node_id, broker in cluster.brokers.items()
    }


def until_all_in_sync(cluster: EmbeddedCluster, topic: str) -> None:
    until(lambda: list(cluster.in_sync(topic)) == [1, 2, 3])


def within_time(action: Callable[[], object]) -> None:
    """Run an action that must not wait for a paused broker."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("brokers", "racks", "problem"),
    [(0, (), "brokers=0: a cluster needs at least one"), (3, ("a", "b"), "one for each of the 3 brokers")],
)
def test_an_impossible_cluster_is_refused(brokers: int, racks: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        EmbeddedCluster(brokers, racks=racks)


@pytest.mark.parametrize("fault", ["kill", "shut_down", "restart", "pause", "isolate"])
def test_faults_name_the_brokers_that_there_are(cluster: EmbeddedCluster, fault: str) -> None:
    with pytest.raises(ValueError, match="there is no broker 9; the cluster has 1, 2, 3"):
        getattr(cluster, fault)(9)
    with pytest.raises(ValueError, match="broker 1 is not paused"):
        cluster.resume(1)


def test_acknowledged_records_are_on_all_brokers(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", partitions=2)
    for number in range(50):
        cluster.produce("t", b"%d" % number, partition=number % 2)
    for partition in range(2):
        one, two, three = logs(cluster, "t", partition).values()
        assert one
        assert one == two == three


def test_partitions_can_be_added_while_a_broker_is_down(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.shut_down(3)
    assert cluster.client.admin.create_partitions({"t": 4}) == {"t": None}
    for partition in range(4):
        cluster.produce("t", b"%d" % partition, partition=partition)
    cluster.restart(3)
    until(lambda: all(list(cluster.in_sync("t", partition)) == [1, 2, 3] for partition in range(4)))


def test_records_survive_the_death_of_their_leader(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    for number in range(20):
        cluster.produce("t", b"%d" % number)
    dead = cluster.leader("t")
    assert dead is not None
    cluster.kill(dead)
    for number in range(20, 40):
        cluster.produce("t", b"%d" % number)
    assert cluster.leader("t") not in (dead, None)
    assert dead not in cluster.in_sync("t")
    assert values(cluster, "t", 40) == [b"%d" % number for number in range(40)]

    cluster.restart(dead)
    until_all_in_sync(cluster, "t")
    one, two, three = logs(cluster, "t").values()
    assert one == two == three


def test_a_leader_that_stops_in_order_hands_its_partitions_over(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", partitions=3)
    cluster.shut_down(1)
    assert {cluster.leader("t", partition) for partition in range(3)} == {2, 3}
    cluster.restart(1)
    until_all_in_sync(cluster, "t")


def test_leadership_returns_to_the_preferred_leader() -> None:
    with EmbeddedCluster(3, {"leader.imbalance.check.interval.seconds": "1"}) as cluster:
        cluster.create_topic("t")
        preferred = cluster.leader("t")
        assert preferred is not None
        cluster.shut_down(preferred)
        assert cluster.leader("t") != preferred
        cluster.restart(preferred)
        until(lambda: cluster.leader("t") == preferred)


def test_acks_all_needs_min_insync_replicas(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", configs={"min.insync.replicas": "2"})
    cluster.produce("t", b"first")
    leader = cluster.leader("t")
    followers = [node_id for node_id in cluster.brokers if node_id != leader]
    for node_id in followers:
        cluster.kill(node_id)
    until(lambda: len(cluster.in_sync("t")) == 1)
    producer = cluster.client.producer(delivery_timeout_ms=1_000)
    with pytest.raises((KafkaError, TimeoutError)) as raised:
        producer.send_and_wait("t", b"second")
    producer.close(flush=False)
    assert not isinstance(raised.value, KafkaError) or raised.value.code in (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
    )
    cluster.restart(followers[0])
    until(lambda: len(cluster.in_sync("t")) == 2)
    cluster.produce("t", b"third")
    assert values(cluster, "t", 2) == [b"first", b"third"]


def test_a_paused_leader_is_replaced_and_its_own_records_are_truncated(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.produce("t", b"first")
    paused = cluster.leader("t")
    assert paused is not None
    cluster.pause(paused)
    until(lambda: cluster.leader("t") not in (paused, None))
    cluster.produce("t", b"second")
    cluster.resume(paused)
    until_all_in_sync(cluster, "t")
    assert values(cluster, "t", 2) == [b"first", b"second"]


def test_records_that_only_an_isolated_leader_has_are_truncated(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", configs={"min.insync.replicas": "2"})
    cluster.produce("t", b"first")
    leader = cluster.leader("t")
    assert leader is not None
    cluster.isolate(leader)
    with cluster.client.producer(acks=1) as producer:
        producer.send_and_wait("t", b"lost")
    cluster.kill(leader)
    cluster.rejoin()
    until(lambda: cluster.leader("t") not in (leader, None))
    cluster.produce("t", b"second")
    cluster.restart(leader)
    until_all_in_sync(cluster, "t")
    assert values(cluster, "t", 2) == [b"first", b"second"]
    one, two, three = logs(cluster, "t").values()
    assert one == two == three
    assert b"lost" not in one


def test_a_follower_that_does_not_fetch_leaves_the_isr_and_returns(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    leader = cluster.leader("t")
    follower = next(node_id for node_id in cluster.brokers if node_id != leader)
    cluster.isolate(follower)
    with ThreadPoolExecutor(1) as pool:
        delivery = pool.submit(cluster.produce, "t", b"value")
        until(lambda: follower not in cluster.in_sync("t"))
        delivery.result(20)
    cluster.rejoin()
    until_all_in_sync(cluster, "t")


def test_committed_offsets_survive_the_death_of_their_coordinator(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    groups = cluster.client.groups
    groups.commit_offsets("g", {TopicPartition("t", 0): 7})
    until_all_in_sync(cluster, "__consumer_offsets")
    for node_id in (1, 2):
        cluster.kill(node_id)
        found = groups.offsets("g")[TopicPartition("t", 0)]
        assert isinstance(found, OffsetAndMetadata)
        assert found.offset == 7
        cluster.restart(node_id)
        until_all_in_sync(cluster, "__consumer_offsets")


def test_a_broker_that_was_down_during_a_deletion_deletes_its_logs_when_it_is_back() -> None:
    with EmbeddedCluster(3, {"barnabas.trash.retention.ms": "0"}) as cluster:
        cluster.create_topic("t")
        cluster.produce("t", b"value")
        cluster.kill(2)
        until(lambda: 2 not in cluster.in_sync("t"))
        cluster.client.admin.delete_topics(["t"])
        cluster.restart(2)
        directory = cluster.brokers[2].directory
        until(lambda: not (directory / "t-0").exists())
        assert not list(directory.glob("*-stray"))
        until(lambda: not cluster.brokers[1].server.broker.image.deleted_topics)


def test_committed_offsets_return_with_their_topic_wherever_their_groups_are_coordinated(
    cluster: EmbeddedCluster,
) -> None:
    cluster.create_topic("t", partitions=2)
    client = cluster.client
    offsets = {TopicPartition("t", 0): 3, TopicPartition("t", 1): 5}
    groups = [f"g{number}" for number in range(9)]
    for group_id in groups:
        client.groups.commit_offsets(group_id, offsets)
    client.admin.delete_topics(["t"])
    until(lambda: not any(client.groups.offsets(group_id) for group_id in groups))
    assert client.admin.undelete_topic(Trashed("t")).offsets == 18
    for group_id in groups:
        assert {tp: each.offset for tp, each in client.groups.offsets(group_id).items()} == offsets


def test_a_dead_coordinator_does_not_prevent_a_deletion(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    client = cluster.client
    groups = [f"g{number}" for number in range(9)]
    for group_id in groups:
        client.groups.commit_offsets(group_id, {TopicPartition("t", 0): 3})
    cluster.kill(3)
    client.admin.delete_topics(["t"])
    brokers = [cluster.brokers[node_id].server.broker for node_id in (1, 2)]
    until(lambda: not any("t" in broker.image.topics for broker in brokers))
    assert 0 < client.admin.undelete_topic(Trashed("t")).offsets <= 9


@pytest.mark.parametrize("fault", ["kill", "shut_down", "restart"])
def test_a_paused_broker_can_be_stopped(cluster: EmbeddedCluster, fault: str) -> None:
    cluster.create_topic("t")
    cluster.pause(2)
    within_time(lambda: getattr(cluster, fault)(2))
    if fault != "restart":
        cluster.restart(2)
    cluster.produce("t", b"value")
    until_all_in_sync(cluster, "t")


def test_brokers_can_be_isolated_while_one_is_paused(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.pause(2)
    within_time(lambda: cluster.isolate(3))
    clients = cluster.brokers[2].server.parts.broker_clients
    assert not clients.fetches._blocked
    cluster.resume(2)
    until(lambda: clients.fetches._blocked == {3})
    cluster.pause(1)
    within_time(cluster.rejoin)
    assert not clients.fetches._blocked
    cluster.resume(1)
    cluster.produce("t", b"value")
    until_all_in_sync(cluster, "t")


def test_several_brokers_can_be_isolated_and_stay_so_after_a_restart(cluster: EmbeddedCluster) -> None:
    def blocked() -> list[Collection[int]]:
        return [broker.server.parts.broker_clients.fetches._blocked for broker in cluster.brokers.values()]

    cluster.isolate(1)
    cluster.isolate(2)
    assert blocked() == [{2, 3}, {1, 3}, {1, 2}]
    for node_id in (3, 1):
        cluster.restart(node_id)
        assert blocked() == [{2, 3}, {1, 3}, {1, 2}]
    cluster.shut_down(2)
    cluster.rejoin()
    cluster.restart(2)
    assert not any(blocked())


def test_a_broker_that_cannot_be_stopped_leaves_no_others_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedCluster(3) as cluster:
        first, *others = cluster.brokers.values()
        directories = [broker.directory for broker in (first, *others)]
        store = Path(others[0].server.broker.config.text("barnabas.store").removeprefix("sqlite:"))
        stop = first.stop

        def stop_and_fail() -> None:
            stop()
            raise LookupError("not stopped")

        monkeypatch.setattr(first, "stop", stop_and_fail)
        with pytest.raises(LookupError, match="not stopped"):
            cluster.stop()
        assert not any(directory.exists() for directory in (*directories, store.parent))
        assert not cluster.brokers


def test_only_a_running_broker_can_be_paused(cluster: EmbeddedCluster) -> None:
    cluster.pause(2)
    with pytest.raises(ValueError, match="broker 2 is paused already"):
        cluster.pause(2)
    cluster.kill(3)
    with pytest.raises(ValueError, match="broker 3 is down"):
        cluster.pause(3)
    within_time(cluster.stop)
