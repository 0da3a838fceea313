"""A cluster whose time can be advanced."""

from collections.abc import Iterator

import pytest

from barnabas.testing import EmbeddedCluster
from support.expiring_transactions import check_expiry
from support.waiting import until


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3, virtual_time=True) as running:
        yield running


def test_a_cluster_without_virtual_time_cannot_be_advanced() -> None:
    with EmbeddedCluster(1) as cluster, pytest.raises(RuntimeError, match="virtual_time=True"):
        cluster.advance(hours=1)


def test_records_expire_on_all_replicas(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", configs={"retention.ms": str(3_600_000)})
    cluster.produce("t", "old")
    cluster.advance(hours=2)
    cluster.produce("t", "new")
    assert [record.value for record in cluster.records("t")] == [b"new"]
    for broker in cluster.brokers.values():
        log = broker.server.broker.replicas.find("t", 0).log
        until(lambda log=log: log.log_start_offset == 1)


def test_brokers_stay_in_sync_while_hours_pass(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", partitions=3)
    for partition in range(3):
        cluster.produce("t", "value", partition=partition)
    leaders = [cluster.leader("t", partition) for partition in range(3)]
    registered = cluster.brokers[1].server.broker.image.brokers
    cluster.advance(hours=2)
    assert [cluster.leader("t", partition) for partition in range(3)] == leaders
    assert [list(cluster.in_sync("t", partition)) for partition in range(3)] == [[1, 2, 3]] * 3
    assert cluster.brokers[1].server.broker.image.brokers == registered


def test_an_open_transaction_is_aborted_after_its_timeout(cluster: EmbeddedCluster) -> None:
    check_expiry(cluster, partitions_count=3)


def test_a_dead_broker_stays_out_while_time_passes_and_returns(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.produce("t", "first")
    cluster.kill(2)
    until(lambda: 2 not in cluster.in_sync("t"))
    cluster.advance(minutes=30)
    cluster.restart(2)
    until(lambda: list(cluster.in_sync("t")) == [1, 2, 3])
    assert [record.value for record in cluster.records("t")] == [b"first"]


def test_a_paused_broker_is_fenced_when_its_session_ends(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t")
    cluster.pause(2)
    cluster.advance(minutes=5)
    until(lambda: 2 not in cluster.in_sync("t"))
    cluster.resume(2)
    until(lambda: list(cluster.in_sync("t")) == [1, 2, 3])
