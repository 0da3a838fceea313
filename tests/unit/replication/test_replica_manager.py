import asyncio
import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.base import disk
from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log import leader_epoch_cache as leader_epochs
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.configs import TOPIC_CONFIGS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_creation import MorePartitions, decide_create_partitions
from barnabas.metadata.producer_ids import PRODUCER_IDS
from barnabas.metadata.store import Commit, StoreChange
from barnabas.metadata.topic_creation import TopicToCreate, decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete, decide_remove_deleted
from barnabas.metadata.topics import (
    DELETED_TOPICS,
    PARTITION_STATES,
    TOPICS,
    DeletedTopic,
    PartitionRegistration,
    TopicImage,
    partition_key,
)
from barnabas.replication.replica_manager import OPENED_PER_YIELD_COUNT, ReplicaManager
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.errors import ErrorCode, KafkaError
from support.batches import batch
from support.images import RULES, cluster, manually_assigned, new_topic, replayed, with_state


class Broker:
    """Broker 1: its disks, its replicas, and the image that they follow."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.max_message_bytes = 1000

    def start(self, image: MetadataImage) -> None:
        self.log_manager = LogManager.open(
            self.paths, cluster_id="c", node_id=1, clock=ManualClock(), random=random.Random(0)
        )
        self.log_manager.load(lambda topic: LogConfig())
        self.replicas = ReplicaManager(1, self.log_manager, self._config)
        self.image = image
        self.replicas.load(image)

    def restart(self) -> None:
        self.log_manager.close()
        self.start(self.image)

    def _config(self, topic: str, overrides: Mapping[str, str]) -> LogConfig:
        retention_ms = int(overrides.get("retention.ms", 5000))
        return LogConfig(retention_ms=retention_ms, max_message_bytes=self.max_message_bytes)

    def commit(self, *changes: StoreChange) -> None:
        before = self.image
        self.image = before.replay(Commit(before.revision + 1, changes))
        for _ in self.replicas.apply(before, self.image, ChangedKeys(changes)).__await__():
            pass

    def create(self, *topics: TopicToCreate) -> None:
        rng = random.Random(self.image.revision)
        self.commit(*decide_create(self.image, topics, RULES, rng, validate_only=False).changes)

    def delete(self, *names: str) -> None:
        self.commit(*decide_delete(self.image, [TopicToDelete(name) for name in names]).changes)

    def topic(self, name: str) -> TopicImage:
        return self.image.topics[name]

    @property
    def held(self) -> set[str]:
        """Return the open partitions."""
        return {f"{partition.topic}-{partition.index}" for partition in self.replicas}

    @property
    def on_disk(self) -> set[str]:
        """Return the partition directories, without the unique suffix of renamed ones."""
        found = [path.name for root in self.paths for path in root.iterdir() if path.is_dir()]
        return {re.sub(r"\.[0-9a-f]{32}", "", name) for name in found}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker([tmp_path / "one"])
    yield made
    made.log_manager.close()


@pytest.fixture
def two_disks(tmp_path: Path) -> Iterator[Broker]:
    made = Broker([tmp_path / "one", tmp_path / "two"])
    yield made
    made.log_manager.close()


def code_of(find: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        find()
    assert raised.value.message
    return raised.value.code


def test_assigned_replicas_are_opened_at_the_start(broker: Broker) -> None:
    broker.start(cluster(3, manually_assigned("t", [1, 2], [3, 2], [2, 1])))
    assert broker.held == broker.on_disk == {"t-0", "t-2"}
    assert broker.replicas.statistics() == {
        "partitions_count": 2,
        "leaders_count": 1,
        "under_replicated_count": 0,
        "under_min_isr_count": 0,
        "waits_count": 0,
        "expired_count": 0,
    }


def test_metrics_show_what_this_broker_leads_without_all_replicas_in_sync(broker: Broker) -> None:
    broker.start(cluster(3, manually_assigned("t", [1, 2], [3, 1], [1, 3])))
    topic = broker.topic("t")
    for index in (0, 1):
        state = broker.image.partition(topic, index)
        alone = replace(state, isr=(1,), leader=1, leader_epoch=state.leader + 1, partition_epoch=1)
        broker.commit(PARTITION_STATES.put(partition_key(topic.topic_id, index), alone))
    registry = MetricsRegistry()
    broker.replicas.register_metrics(registry)
    lines = registry.render().decode().splitlines()
    assert "barnabas_partition_leaders 3.0" in lines
    assert "barnabas_under_replicated_partitions 2.0" in lines
    assert "barnabas_under_min_isr_partitions 0.0" in lines
    assert "barnabas_leader_elections_total 2.0" in lines


def test_a_created_topic_is_opened(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t", 2))
    found = broker.replicas.partition("t", 1)
    assert found is broker.replicas.partition_by_id(broker.topic("t").topic_id, 1)
    assert found is broker.replicas.find("t", 1)
    assert found.log.topic_id == broker.topic("t").topic_id
    assert found.is_leader


def test_added_partitions_are_opened_and_others_stay_open(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t"))
    first = broker.replicas.partition("t", 0)
    more = [MorePartitions("t", 3)]
    broker.commit(
        *decide_create_partitions(broker.image, more, random.Random(0), validate_only=False).changes
    )
    assert broker.held == {"t-0", "t-1", "t-2"}
    assert broker.replicas.partition("t", 0) is first


def test_missing_partitions_have_distinct_errors(broker: Broker) -> None:
    broker.start(cluster(2, manually_assigned("t", [1], [2])))
    topic_id = broker.topic("t").topic_id
    by_name, by_id = broker.replicas.partition, broker.replicas.partition_by_id
    assert code_of(lambda: by_name("gone", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: by_name("t", 2)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: by_name("t", -1)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: by_name("t", 1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(lambda: by_id(bytes(16), 0)) is ErrorCode.UNKNOWN_TOPIC_ID
    assert code_of(lambda: by_id(topic_id, 2)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: by_id(topic_id, 1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert broker.replicas.find("t", 1) is None


def test_a_deleted_topic_is_closed_renamed_and_reported(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t", 2), new_topic("stays"))
    topic, partition = broker.topic("t"), broker.replicas.partition("t", 0)
    broker.delete("t")
    assert broker.held == {"stays-0"}
    assert broker.on_disk == {"t-0-delete", "t-1-delete", "stays-0"}
    assert broker.replicas.deleted_topics() == [topic.topic_id]
    assert code_of(lambda: broker.replicas.partition("t", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: broker.replicas.partition_by_id(topic.topic_id, 0)) is ErrorCode.UNKNOWN_TOPIC_ID
    assert code_of(partition.check_leader) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_recreated_topic_is_empty(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t"))
    old = broker.replicas.partition("t", 0)
    old.append_as_leader(batch(b"a"), 1)
    broker.delete("t")
    broker.create(new_topic("t"))
    new = broker.replicas.partition("t", 0)
    assert (new.log.log_end_offset, new.topic_id) == (0, broker.topic("t").topic_id)
    assert new.topic_id != old.topic_id
    assert broker.on_disk == {"t-0", "t-0-delete"}


def test_a_topic_that_was_created_and_deleted_between_two_images_is_reported(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.commit(DELETED_TOPICS.put((b"t" * 16).hex(), DeletedTopic("t", b"t" * 16, (1, 2))))
    assert broker.replicas.deleted_topics() == [b"t" * 16]
    broker.replicas.mark_reported([b"t" * 16])
    broker.commit(DELETED_TOPICS.put((b"t" * 16).hex(), DeletedTopic("t", b"t" * 16, (2,))))
    assert broker.replicas.deleted_topics() == []


def test_a_topic_replaced_by_one_change_is_deleted_and_created(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t", 2))
    old = broker.topic("t")
    broker.commit(
        TOPICS.put("t", TopicImage("t", b"n" * 16, ((1,),))),
        DELETED_TOPICS.put(old.topic_id.hex(), DeletedTopic("t", old.topic_id, (1,))),
    )
    assert broker.replicas.deleted_topics() == [old.topic_id]
    assert broker.held == {"t-0"}
    assert broker.replicas.partition("t", 0).topic_id == b"n" * 16


def test_logs_of_a_topic_that_vanishes_without_having_been_deleted_are_renamed(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t", 2), new_topic("replaced"))
    closed = broker.replicas.partition("t", 0)
    closed.append_as_leader(batch(b"a"), 1)
    broker.commit(TOPICS.remove("t"), TOPICS.put("replaced", TopicImage("replaced", b"n" * 16, ((1,),))))
    assert broker.held == {"replaced-0"}
    assert broker.on_disk == {"t-0-stray", "t-1-stray", "replaced-0-stray", "replaced-0"}
    assert broker.replicas.deleted_topics() == []
    assert code_of(closed.check_leader) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_deletion_learnt_after_all_other_brokers_have_reported_it_is_a_deletion(broker: Broker) -> None:
    broker.start(cluster(2, manually_assigned("t", [1, 2])))
    topic = broker.topic("t")
    deleted = replayed(broker.image, decide_delete(broker.image, [TopicToDelete("t")]))
    reported = replayed(deleted, decide_remove_deleted(deleted, [topic.topic_id], 2))
    broker.commit(
        TOPICS.remove("t"),
        DELETED_TOPICS.put(topic.topic_id.hex(), reported.deleted_topics[topic.topic_id.hex()]),
    )
    assert broker.on_disk == {"t-0-delete"}
    assert broker.replicas.deleted_topics() == [topic.topic_id]


def test_changed_configs_reach_only_their_topics_logs(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t", 2, configs={"retention.ms": "7"}), new_topic("other"))

    def retentions() -> list[int]:
        at = (("t", 0), ("t", 1), ("other", 0))
        return [broker.replicas.partition(*each).log.config.retention_ms for each in at]

    assert retentions() == [7, 7, 5000]
    broker.commit(TOPIC_CONFIGS.put("t", {"retention.ms": "9"}))
    assert retentions() == [9, 9, 5000]
    broker.commit(TOPIC_CONFIGS.remove("t"))
    assert retentions() == [5000, 5000, 5000]


def test_changed_broker_defaults_reach_every_log(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t", 2, configs={"retention.ms": "7"}))
    broker.max_message_bytes = 77
    asyncio.run(broker.replicas.reconfigure_all())
    for index in range(2):
        config = broker.replicas.partition("t", index).log.config
        assert (config.max_message_bytes, config.retention_ms) == (77, 7)


def test_an_existing_log_gets_its_topics_configs(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t", configs={"retention.ms": "7"}))
    broker.restart()
    assert broker.replicas.partition("t", 0).log.config.retention_ms == 7


def test_a_changed_state_reaches_its_partition(broker: Broker) -> None:
    broker.start(cluster(2, manually_assigned("t", [1, 2], [1, 2])))
    key = partition_key(broker.topic("t").topic_id, 1)
    broker.commit(PARTITION_STATES.put(key, PartitionRegistration(2, 4, (2,))))
    changed, other = (broker.replicas.partition("t", index) for index in (1, 0))
    assert (changed.leader, changed.leader_epoch, changed.isr) == (2, 4, (2,))
    assert other.is_leader
    assert broker.replicas.statistics()["leaders_count"] == 1


def test_states_of_other_brokers_partitions_are_ignored(broker: Broker) -> None:
    broker.start(cluster(2, manually_assigned("t", [2])))
    key = partition_key(broker.topic("t").topic_id, 0)
    broker.commit(PARTITION_STATES.put(key, PartitionRegistration(2, 4, (2,))))
    broker.commit(PARTITION_STATES.remove(partition_key(b"?" * 16, 0)))
    assert broker.held == set()


def test_replicas_added_by_a_reassignment_are_opened_and_removed_ones_deleted(
    broker: Broker,
) -> None:
    broker.start(cluster(3, manually_assigned("t", [1, 2], [2, 3])))
    coming, going = (partition_key(broker.topic("t").topic_id, index) for index in (1, 0))
    broker.commit(
        PARTITION_STATES.put(coming, PartitionRegistration(2, 1, (2,), replicas=(1, 2, 3), adding=(1,)))
    )
    assert broker.held == {"t-0", "t-1"}
    assert broker.replicas.partition("t", 1).replicas == (1, 2, 3)
    broker.commit(PARTITION_STATES.put(going, PartitionRegistration(2, 1, (2,), 1, replicas=(2,))))
    assert broker.held == {"t-1"}
    assert broker.on_disk == {"t-0-delete", "t-1"}
    assert code_of(lambda: broker.replicas.partition("t", 0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_replica_that_an_older_state_lacks_is_renamed(broker: Broker) -> None:
    broker.start(cluster(2, manually_assigned("t", [2])))
    key = partition_key(broker.topic("t").topic_id, 0)
    broker.commit(PARTITION_STATES.put(key, PartitionRegistration(2, 1, (2,), 1, (2, 1), adding=(1,))))
    assert broker.held == {"t-0"}
    broker.commit(PARTITION_STATES.remove(key))
    assert (broker.held, broker.on_disk) == (set(), {"t-0-stray"})


def test_a_replica_removed_while_the_broker_was_down_is_renamed_with_a_warning(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.start(cluster(2, manually_assigned("t", [1, 2])))
    state = PartitionRegistration(2, 1, (2,), replicas=(2,))
    broker.image = with_state(broker.image, broker.topic("t"), 0, state)
    broker.restart()
    assert (broker.held, broker.on_disk) == (set(), {"t-0-stray"})
    assert "renamed to -stray and kept" in (logged := capsys.readouterr().err)
    assert "t-0" in logged


def test_a_log_survives_a_restart_with_its_records(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t"))
    broker.replicas.partition("t", 0).append_as_leader(batch(b"a", b"b"), 1)
    broker.restart()
    assert broker.replicas.deleted_topics() == []
    assert broker.replicas.partition("t", 0).log.high_watermark == 2


def test_logs_of_unknown_topics_are_renamed(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t"))
    broker.image = cluster(1)
    broker.restart()
    assert broker.held == set()
    assert broker.on_disk == {"t-0-stray"}


def test_logs_of_a_former_topic_of_the_same_name_are_renamed(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t"))
    broker.replicas.partition("t", 0).append_as_leader(batch(b"a"), 1)
    broker.image = broker.image.replay(
        Commit(broker.image.revision + 1, (TOPICS.put("t", TopicImage("t", b"n" * 16, ((1,),))),))
    )
    broker.restart()
    assert broker.on_disk == {"t-0", "t-0-stray"}
    assert broker.replicas.partition("t", 0).log.log_end_offset == 0


def test_a_deletion_interrupted_by_a_crash_is_completed_at_the_next_start(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t", 2))
    topic_id = broker.topic("t").topic_id
    broker.image = replayed(broker.image, decide_delete(broker.image, [TopicToDelete("t")]))
    broker.restart()
    assert broker.replicas.deleted_topics() == [topic_id]
    assert broker.on_disk == {"t-0-delete", "t-1-delete"}
    expiry = decide_remove_deleted(broker.image, [topic_id], 1)
    broker.commit(*expiry.changes)
    broker.restart()
    assert broker.replicas.deleted_topics() == []


def fail_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_directory(path: Path, *arguments: Any, **keywords: Any) -> None:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(disk, "make_directory", make_directory)


def test_a_topic_whose_disk_fails_during_its_creation_is_offline_and_others_are_not(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("before"))
    with monkeypatch.context() as patched:
        fail_disks(patched)
        broker.create(new_topic("t"))
    topic_id = broker.topic("t").topic_id
    assert code_of(lambda: broker.replicas.partition("t", 0)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(lambda: broker.replicas.partition_by_id(topic_id, 0)) is ErrorCode.KAFKA_STORAGE_ERROR
    broker.delete("t")
    assert code_of(lambda: broker.replicas.partition("t", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def fail_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, *arguments: Any, **keywords: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(leader_epochs, "write_checkpoint", write)


def test_a_disk_that_is_full_at_an_election_is_offline_and_others_are_not(
    two_disks: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_disks.start(cluster(1))
    with monkeypatch.context() as patched:
        fail_checkpoints(patched)
        two_disks.create(new_topic("t"))
    home = two_disks.log_manager.directory_of(TopicPartition("t", 0))
    assert home is not None
    assert "No space left" in str(home.failure)
    with pytest.raises(KafkaError, match="offline"):
        two_disks.replicas.partition("t", 0).append_as_leader(batch(b"a"), -1)
    two_disks.create(new_topic("u"))
    two_disks.replicas.partition("u", 0).append_as_leader(batch(b"a"), -1)


def test_an_election_does_not_touch_a_failed_disk(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t"))
    topic = broker.topic("t")
    broker.replicas.partition("t", 0).log.take_offline(OSError(5, "Input/output error"))
    fail_checkpoints(monkeypatch)
    broker.commit(PARTITION_STATES.put(partition_key(topic.topic_id, 0), PartitionRegistration(1, 1, (1,))))
    assert broker.replicas.partition("t", 0).leader_epoch == 1


def test_replicas_on_a_failed_disk_are_not_created_on_another(two_disks: Broker) -> None:
    two_disks.start(cluster(1))
    two_disks.create(new_topic("t", 2))
    [lost] = [path for path in two_disks.paths if (path / "t-1").exists()]
    two_disks.log_manager.close()
    (lost / "t-1" / "partition.metadata").write_text("damaged")
    two_disks.start(two_disks.image)
    assert two_disks.held == {"t-0"}
    assert code_of(lambda: two_disks.replicas.partition("t", 1)) is ErrorCode.KAFKA_STORAGE_ERROR
    two_disks.create(new_topic("new"))
    assert two_disks.held == {"t-0", "new-0"}


def test_new_replicas_go_to_the_directory_with_the_fewest(two_disks: Broker) -> None:
    two_disks.start(cluster(1))
    two_disks.create(new_topic("t", 4))
    homes = [two_disks.log_manager.directory_of(TopicPartition("t", index)) for index in range(4)]
    assert [home is not None and home.path.name for home in homes] == ["one", "two", "one", "two"]


def test_a_broker_that_restarts_with_an_empty_disk_recreates_its_replicas(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t"))
    broker.log_manager.close()
    shutil.rmtree(broker.paths[0])
    broker.start(broker.image)
    assert broker.held == {"t-0"}


def test_commits_of_other_record_types_change_nothing(broker: Broker) -> None:
    broker.start(cluster(1))
    broker.create(new_topic("t"))
    before = broker.replicas.partition("t", 0)
    broker.commit(PRODUCER_IDS.put("next", 1000))
    assert broker.replicas.partition("t", 0) is before


def test_others_are_served_while_many_replicas_are_opened(broker: Broker) -> None:
    broker.start(cluster(1))
    before = broker.image
    rng = random.Random(0)
    wide = new_topic("wide", 3 * OPENED_PER_YIELD_COUNT)
    changes = decide_create(before, [wide], RULES, rng, validate_only=False).changes
    after = before.replay(Commit(before.revision + 1, changes))
    opened = [
        len(broker.held) for _ in broker.replicas.apply(before, after, ChangedKeys(changes)).__await__()
    ]
    assert opened == [OPENED_PER_YIELD_COUNT, 2 * OPENED_PER_YIELD_COUNT, 3 * OPENED_PER_YIELD_COUNT]
