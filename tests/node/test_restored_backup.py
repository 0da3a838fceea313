"""Brokers that start with a backup of their metadata that is older than their logs."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.testing import EmbeddedCluster
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from support.admin import create, new_topic
from support.batches import batch, values_of
from support.process import BrokerProcess
from support.waiting import until
from support.wire import Wire

FIRST_BATCH = {"producer_epoch": 0, "base_sequence": 0}


def producer_id(wire: Wire) -> int:
    allocated: int = wire.ask(InitProducerIdRequest(transactional_id=None)).producer_id
    return allocated


def store_of(cluster: EmbeddedCluster) -> Path:
    return Path(cluster.brokers[1].server.broker.config.text("barnabas.store").removeprefix("sqlite:"))


def back_up(store: Path, backup: Path) -> None:
    """Copy a store that is in use."""
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)


def revision_of(store: Path) -> int:
    with closing(sqlite3.connect(store)) as opened:
        [[revision]] = opened.execute("SELECT last FROM revision")
    return int(revision)


def restore(backup: Path, store: Path) -> None:
    for path in store.parent.glob(f"{store.name}*"):
        path.unlink()
    shutil.copy(backup, store)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3, {"barnabas.console.enable": "false"}) as running:
        running.create_topic("t", 3)
        yield running


def test_leaders_of_a_cluster_continue_after_the_epochs_of_their_logs(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    store = store_of(cluster)
    back_up(store, tmp_path / "backup")
    for node_id in (1, 2, 3):  # so that leaders change, and each epoch has records
        cluster.restart(node_id)
        for index in range(3):
            cluster.produce("t", f"{node_id}", partition=index)
    used = {
        log.latest_epoch or 0
        for broker in cluster.brokers.values()
        for tp, log in broker.server.broker.replicas.log_manager.logs.items()
        if tp.topic == "t"
    }
    for node_id in (1, 2, 3):
        cluster.shut_down(node_id)
    restore(tmp_path / "backup", store)
    for node_id in (1, 2, 3):
        cluster.restart(node_id)
    until(lambda: all(len(cluster.in_sync("t", index)) == 3 for index in range(3)))
    image = cluster.brokers[1].server.broker.image
    epochs = [image.partition(image.topics["t"], index).leader_epoch for index in range(3)]
    assert max(used) > 0
    assert min(epochs) > max(used)
    for index in range(3):
        cluster.produce("t", "after", partition=index)
    until(lambda: all(len(cluster.in_sync("t", index)) == 3 for index in range(3)))
    for index in range(3):
        values = [record.value for record in cluster.records("t") if record.partition == index]
        assert values == [b"1", b"2", b"3", b"after"]


def test_no_broker_allocates_used_producer_ids_although_commits_hide_from_some_that_the_metadata_went_back(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    store = store_of(cluster)
    back_up(store, tmp_path / "backup")
    used = []
    for node_id in (1, 2, 3):
        with Wire(cluster.brokers[node_id].port) as wire:
            used.append(producer_id(wire))
    for node_id in (1, 2, 3):
        cluster.shut_down(node_id)
    restore(tmp_path / "backup", store)
    cluster.restart(1)
    for number in range(6):
        cluster.create_topic(f"later-{number}", replication_factor=1)
    for node_id in (2, 3):
        cluster.restart(node_id)
    for node_id in (1, 2, 3):
        with Wire(cluster.brokers[node_id].port) as wire:
            assert producer_id(wire) > max(used) + 1_000


def test_a_replica_that_was_moved_after_the_backup_does_not_lead_before_it_has_the_records(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """Neither on a broker that notices the restoration, nor on one from which commits hide it."""
    store, moved = store_of(cluster), [TopicPartition("t", 0), TopicPartition("t", 1)]
    raise_errors(
        cluster.client.admin.alter_partition_reassignments({moved[0]: [1, 2], moved[1]: [3, 2]}).values()
    )
    until(lambda: [cluster.in_sync("t", index) for index in range(2)] == [[1, 2], [2, 3]])
    back_up(store, tmp_path / "backup")
    raise_errors(cluster.client.admin.alter_partition_reassignments({moved[0]: [2], moved[1]: [2]}).values())
    until(lambda: [cluster.in_sync("t", index) for index in range(2)] == [[2], [2]])
    for index in range(2):
        cluster.produce("t", "kept", partition=index)
    for node_id in (1, 2, 3):
        cluster.shut_down(node_id)
    restore(tmp_path / "backup", store)
    for node_id in (1, 3, 2):
        cluster.restart(node_id)
    until(lambda: [cluster.in_sync("t", index) for index in range(2)] == [[1, 2], [2, 3]])
    assert [record.value for record in cluster.records("t")] == [b"kept", b"kept"]


def test_a_broker_allocates_no_producer_ids_that_are_in_its_logs(tmp_path: Path) -> None:
    store = tmp_path / "data" / "metadata.sqlite"
    with BrokerProcess(tmp_path / "data") as broker, Wire(broker.port) as wire:
        create(wire, new_topic("t"))
        back_up(store, tmp_path / "backup")
        first = producer_id(wire)
        assert wire.produce("t", batch(b"first", producer_id=first, **FIRST_BATCH)).error_code == 0
        checkpoint = tmp_path / "data" / "metadata-revision-checkpoint"
        before = revision_of(tmp_path / "backup")
        until(lambda: checkpoint.exists() and int(checkpoint.read_text().split()[-1]) > before)
        broker.kill()
    restore(tmp_path / "backup", store)
    with BrokerProcess(tmp_path / "data") as broker, Wire(broker.port) as wire:
        second = producer_id(wire)
        assert second > first
        assert wire.produce("t", batch(b"second", producer_id=second, **FIRST_BATCH)).error_code == 0
        assert values_of(wire.fetch("t", 0).records) == [b"first", b"second"]
        assert broker.terminate() == 0
        assert "the metadata is older than the logs, as after the restoration of a backup" in broker.stderr
    with BrokerProcess(tmp_path / "data") as broker:
        assert broker.terminate() == 0
        assert "older than the logs" not in broker.stderr
