"""A broker with logs in the trash, on two disks."""

import asyncio
import random
from pathlib import Path

from barnabas.base.clock import ManualClock
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.trash.trash import reconcile_trash
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.decision import Decision
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete, decide_remove_deleted
from barnabas.metadata.trash import TrashEntry
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_purge, decide_undelete
from barnabas.replication.replica_manager import ReplicaManager
from support.batches import batch, values_of
from support.images import RULES, cluster, new_topic, replayed

PARTITIONS = 3
ALICE = TrashEntry(1_700_000_000_000, "User:alice")


class TrashBroker:
    """Broker 1 on two disks; the image represents the store, which survives a kill."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.image = cluster(1)
        self.clock = ManualClock()
        self.start()

    def start(self) -> None:
        self.log_manager = LogManager.open(
            self.paths, cluster_id="c", node_id=1, clock=self.clock, random=random.Random(0)
        )
        gone = {topic.topic_id for topic in self.image.deleted_topics.values()}
        reconcile_trash(self.log_manager, self.image.topic_names, gone)
        self.log_manager.load(lambda topic: LogConfig())
        self.log_manager.begin_service()
        self.replicas = ReplicaManager(1, self.log_manager, lambda topic, own: LogConfig())
        self.replicas.on_deleted = self.expire
        self.replicas.load(self.image)
        self.expire()

    def restart(self, *, kill: bool = True) -> None:
        if kill:
            for directory in self.log_manager.directories:
                directory.unlock()
        else:
            self.log_manager.close()
        self.start()

    def commit(self, decision: Decision[object]) -> None:
        """Commit to the store; then the broker replays it, until it is killed."""
        before, self.image = self.image, replayed(self.image, decision)
        asyncio.run(self.replicas.apply(before, self.image, ChangedKeys(decision.changes)))

    def expire(self) -> None:
        """Remove deleted topics from the store of which no disk has any logs."""
        deleted = self.replicas.deleted_topics()
        if not self.log_manager.any_offline:
            self.image = replayed(self.image, decide_remove_deleted(self.image, deleted, 1))
            self.replicas.mark_reported(deleted)

    def create(self, name: str) -> None:
        rng = random.Random(self.image.revision)
        new = [new_topic(name, PARTITIONS)]
        self.commit(decide_create(self.image, new, RULES, rng, validate_only=False))
        for index in range(PARTITIONS):
            for value in (b"a", b"b", b"c"):
                self.append(name, index, value)

    def append(self, name: str, index: int, value: bytes) -> None:
        log = self.replicas.partition(name, index).log
        log.append_as_leader(memoryview(bytearray(batch(value))), 0)
        log.update_high_watermark(log.log_end_offset)

    def delete(self, name: str) -> None:
        self.commit(decide_delete(self.image, [TopicToDelete(name)], trash=ALICE))

    def undelete(self, name: str, new_name: str | None = None) -> None:
        self.commit(decide_undelete(self.image, TrashedTopicRequest(name), new_name))

    def purge(self, name: str) -> None:
        self.commit(decide_purge(self.image, [TrashedTopicRequest(name)]))

    def values(self, name: str) -> list[list[bytes]]:
        logs = [self.replicas.partition(name, index).log for index in range(PARTITIONS)]
        return [
            values_of(log.read(log.log_start_offset, 1 << 20, log.log_end_offset).data)
            if log.log_start_offset < log.log_end_offset
            else []
            for log in logs
        ]

    def on_disk(self) -> list[str]:
        """Return log directories: partitions by name, others by suffix."""
        found = [path.name for disk in self.paths for path in disk.glob("*-*") if path.is_dir()]
        return sorted(name if "." not in name else name.rpartition("-")[2] for name in found)


ABC = [[b"a", b"b", b"c"]] * PARTITIONS
NAMED = [f"t-{index}" for index in range(PARTITIONS)]
TRASHED = ["stray"] * PARTITIONS
