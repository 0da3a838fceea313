"""`barnabas reassignments balance` against several brokers."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from typer.testing import CliRunner, Result

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.cli.support.failures import FAILED, NOT_FOUND, OK, WRONG_USE
from barnabas.client.admin.admin import raise_errors
from barnabas.testing import EmbeddedCluster
from support.waiting import until


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as running:
        running.create_topic("t", 6, replication_factor=2)
        yield running


def balance(cluster: EmbeddedCluster, *arguments: str) -> Result:
    environment = {"BARNABAS_BOOTSTRAP": cluster.bootstrap}
    return CliRunner().invoke(app, ["reassignments", "balance", *arguments], env=environment)


def replicas(cluster: EmbeddedCluster) -> Mapping[int, tuple[int, ...]]:
    image = cluster.brokers[1].server.broker.image
    topic = image.topics["t"]
    return {index: image.partition(topic, index).replicas for index in range(topic.partition_count)}


def replica_counts(cluster: EmbeddedCluster) -> Mapping[int, int]:
    return Counter(broker for brokers in replicas(cluster).values() for broker in brokers)


def test_a_broker_is_emptied_and_gets_its_share_again(cluster: EmbeddedCluster) -> None:
    before = replicas(cluster)
    emptied = balance(cluster, "--brokers", "1,2", "--wait", "60", "--json")
    assert emptied.exit_code == OK, emptied.output
    moves = {
        move["partition"]: (move["replicas"], move["new_replicas"]) for move in json.loads(emptied.stdout)
    }
    until(lambda: replica_counts(cluster) == {1: 6, 2: 6})
    for index, brokers in before.items():
        assert moves.get(index, ([*brokers],) * 2) == ([*brokers], [*replicas(cluster)[index]])

    filled = balance(cluster, "--wait", "60")
    assert filled.exit_code == OK, filled.output
    assert filled.stdout.splitlines()[0].split() == ["partition", "replicas", "new", "replicas"]
    until(lambda: replica_counts(cluster) == {1: 4, 2: 4, 3: 4})
    assert Counter(brokers[0] for brokers in replicas(cluster).values()) == {1: 2, 2: 2, 3: 2}
    until(
        lambda: all(cluster.leader("t", index) == brokers[0] for index, brokers in replicas(cluster).items())
    )
    assert balance(cluster).stdout.splitlines()[1:] == []
    for broker in cluster.brokers.values():
        statistics = broker.server.broker.replicas.leader_statistics
        assert statistics.unclean_elections_count == 0


def test_a_dry_run_moves_nothing(cluster: EmbeddedCluster) -> None:
    before = replicas(cluster)
    result = balance(cluster, "--brokers", "1,2", "--dry-run", "--json")
    assert {move["topic"] for move in json.loads(result.stdout)} == {"t"}
    assert not cluster.client.admin.list_partition_reassignments()
    assert replicas(cluster) == before


@pytest.mark.parametrize(
    ("brokers", "exit_code", "message"),
    [
        ("1", WRONG_USE, "1 broker cannot have 2 replicas of each partition of t"),
        ("1,2,7", NOT_FOUND, "there is no broker with node id 7; the cluster has: 1, 2, 3"),
        ("one", WRONG_USE, "'one': must be ids of brokers, as in 1,2,4"),
    ],
)
def test_brokers_that_cannot_have_the_replicas_are_an_error(
    cluster: EmbeddedCluster, brokers: str, exit_code: int, message: str
) -> None:
    result = balance(cluster, "--brokers", brokers)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert message in result.stderr


def test_it_refuses_while_reassignments_are_in_progress(cluster: EmbeddedCluster) -> None:
    tp = TopicPartition("t", 0)
    [leader, *_] = brokers = replicas(cluster)[0]
    [other] = {1, 2, 3} - set(brokers)
    cluster.shut_down(other)
    raise_errors(cluster.client.admin.alter_partition_reassignments({tp: [leader, other]}).values())
    result = balance(cluster)
    assert result.exit_code == FAILED
    assert "1 partition is being reassigned already" in result.stderr
    assert "'barnabas reassignments list' shows them" in result.stderr
    cluster.restart(other)
    until(lambda: set(replicas(cluster)[0]) == {leader, other})


def test_a_broker_that_is_down_keeps_its_replicas_unless_others_are_named(cluster: EmbeddedCluster) -> None:
    cluster.shut_down(3)
    others = [cluster.brokers[node_id].server.broker for node_id in (1, 2)]
    until(lambda: all(broker.image.brokers["3"].fenced for broker in others))
    result = balance(cluster)
    assert (result.exit_code, result.stdout) == (FAILED, "")
    assert "brokers with replicas are down: 3" in result.stderr
    assert balance(cluster, "--brokers", "1,2", "--wait", "60").exit_code == OK
    until(lambda: replica_counts(cluster) == {1: 6, 2: 6})
