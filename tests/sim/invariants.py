"""What must be true of brokers at all times, and what must become true in a quiet phase."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from barnabas.base.ids import TopicPartition
from barnabas.log.log_directory import parse_partition
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import Commit
from barnabas.metadata.topics import DELETED_TOPICS, NO_LEADER, PARTITION_STATES, TopicImage
from barnabas.replication.partition import Partition
from barnabas.wire.records.batch import iterate_headers
from sim.applications import IDLE, PLAIN
from sim.brokers import SimulatedBroker
from sim.disk import SimulatedDisks
from sim.store import SimulatedStore
from sim.survivors import Survivors
from sim.topic_applications import RECYCLED

#: Images of the store that are kept for the comparison with those of brokers.
IMAGES_MAX = 2_000

#: How long a broker may take to remove a directory whose deletion is due.
DELETION_MS = 5_000

#: A log in the trash: the last part is the topic id. One that was set aside has a random number there.
_STRAY = re.compile(r"(.*)-(\d+)\.([0-9a-f]{32})-stray")

#: (base offset, last offset, leader epoch, CRC) of a batch
_Batch = tuple[int, int, int, int]

#: producer id -> (epoch, last sequence, offset of that record, first offset of its open transaction)
_Producers = dict[int, tuple[int, int, int, int]]


class Invariants:
    """Looks into the brokers between two callbacks; each violation is reported once."""

    def __init__(
        self,
        brokers: Sequence[SimulatedBroker],
        store: SimulatedStore,
        disks: SimulatedDisks,
        survivors: Survivors,
        *,
        loses_power: bool,
    ) -> None:
        """:param loses_power: A power failure may undo the removal of logs, which are then set aside for ever."""
        self._brokers = brokers
        self._store = store
        self._disks = disks
        self._survivors = survivors
        self._loses_power = loses_power
        self._image = MetadataImage()
        self._images: dict[int, MetadataImage] = {}
        #: (broker, start of the broker, partition) -> leader epoch, high watermark
        self._high_watermarks: dict[tuple[str, int, TopicPartition], tuple[int, int]] = {}
        #: (partition, leader epoch, base offset) -> batch, and the broker that had it first
        self._written: dict[tuple[TopicPartition, int, int], tuple[_Batch, str]] = {}
        #: topic, partition and broker of replicas that were moved away; a broker that is down then keeps its log
        self._moved_away: set[tuple[str, int, int]] = set()
        self._wrong: dict[str, None] = {}

    @property
    def image(self) -> MetadataImage:
        """The metadata as the store has them."""
        return self._image

    @property
    def wrong(self) -> list[str]:
        return list(self._wrong)

    def has_former_leader(self, topic: str) -> bool:
        """Whether a broker does not know yet that it no longer leads a partition of a topic."""
        image = self._image.topics.get(topic)
        if image is None:
            return False
        present = [self._image.partition(image, index) for index in range(image.partition_count)]
        return any(
            partition.is_leader
            and partition.topic == topic
            and (present[partition.index].leader, present[partition.index].leader_epoch)
            != (partition.broker_id, partition.leader_epoch)
            for broker in self._running()
            if broker.server is not None
            for partition in broker.server.parts.replicas
        )

    def _report(self, what: str) -> None:
        self._wrong[what] = None

    # Commits

    def follow(self, commit: Commit) -> None:
        """Check a commit of the store."""
        before, self._image = self._image, self._image.replay(commit)
        self._images[commit.revision] = self._image
        self._images.pop(commit.revision - IMAGES_MAX, None)
        for change in commit.changes:
            record_type, _, row = change.key.partition("/")
            if record_type == DELETED_TOPICS.name and change.value is None:
                self._check_deletion(before.deleted_topics[row].name)
            if record_type == PARTITION_STATES.name and change.value is not None:
                self._check_change(before, row)

    def _check_change(self, before: MetadataImage, row: str) -> None:
        topic_id, _, index = row.partition("/")
        topic_before = before.topic_by_id(bytes.fromhex(topic_id))
        topic = self._image.topic_by_id(bytes.fromhex(topic_id))
        if topic is None or topic_before is None or int(index) >= len(topic_before.assignments):
            return
        earlier, state = before.partition(topic_before, int(index)), self._image.partition(topic, int(index))
        removed = set(earlier.replicas) - set(state.replicas)
        self._moved_away |= {(topic.name, int(index), broker_id) for broker_id in removed}
        if state.leader_epoch < earlier.leader_epoch:
            self._report(f"epoch: {row} falls from {earlier.leader_epoch} to {state.leader_epoch}")
        if state.leader != earlier.leader and state.leader_epoch == earlier.leader_epoch:
            self._report(f"epoch: {row} has two leaders in epoch {state.leader_epoch}")
        if state.leader != NO_LEADER and state.leader not in state.isr:
            self._report(f"leader: {row} is led by {state.leader}, which is not in sync")

    def _check_deletion(self, topic: str) -> None:
        """No broker has logs of a deleted topic when the store forgets it; else they would stay for ever."""
        if self._loses_power:
            return
        for broker in self._brokers:
            for path in self._disks.directory(broker.name).glob(f"{topic}-*"):
                tp = parse_partition(path.name)
                if tp is not None and tp.topic == topic and broker.name not in self._disks.have_failed:
                    self._report(f"deletion: {topic} is forgotten, but {broker.name} has {path.name}")

    # At all times

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Check each step of a high watermark when it is made: what it promises must be true from then on."""
        advance = Partition._advance_high_watermark

        def advance_and_check(partition: Partition, *arguments: Any) -> None:
            before = partition.log.high_watermark
            advance(partition, *arguments)
            if partition.log.high_watermark > before:
                self._check_step(partition)

        with patch.object(Partition, "_advance_high_watermark", advance_and_check):
            yield

    def _check_step(self, partition: Partition) -> None:
        tp, high_watermark = TopicPartition(partition.topic, partition.index), partition.log.high_watermark
        in_sync_count_min = min(partition.log.config.min_insync_replicas, len(partition.replicas))
        if len(partition.isr) < in_sync_count_min:
            self._report(
                f"high watermark: {tp} on broker-{partition.broker_id} rises to {high_watermark}, "
                f"only {partition.isr} are in sync"
            )
        self._check_in_sync(partition, tp, high_watermark)

    def check(self) -> None:
        """Check what must be true at all times."""
        for broker in self._running():
            assert broker.server is not None
            image = broker.server.parts.metadata.image
            expected = self._images.get(image.revision)
            if expected is not None and image.tables != expected.tables:
                self._report(f"image: {broker.name} differs from the store at revision {image.revision}")
            for partition in broker.server.parts.replicas:
                self._check_high_watermark(broker, partition)

    def _running(self) -> Iterator[SimulatedBroker]:
        return (broker for broker in self._brokers if broker.server is not None)

    def _check_high_watermark(self, broker: SimulatedBroker, partition: Partition) -> None:
        if not partition.is_leader:
            return
        tp, high_watermark = TopicPartition(partition.topic, partition.index), partition.log.high_watermark
        key = (broker.name, broker.starts_count, tp)
        epoch, before = self._high_watermarks.get(key, (partition.leader_epoch, 0))
        if epoch == partition.leader_epoch and high_watermark < before:
            self._report(f"high watermark: {tp} on {broker.name} falls from {before} to {high_watermark}")
        self._high_watermarks[key] = partition.leader_epoch, high_watermark
        self._check_in_sync(partition, tp, high_watermark)

    def _check_in_sync(self, partition: Partition, tp: TopicPartition, high_watermark: int) -> None:
        """The in-sync replicas have everything below the high watermark."""
        topic = self._image.topic_by_id(partition.topic_id)
        if topic is None:
            return
        state = self._image.partition(topic, partition.index)
        if state.leader_epoch != partition.leader_epoch or len(state.replicas) == 1:
            return
        for broker in self._running():
            assert broker.server is not None
            registered = self._image.brokers.get(str(broker.node_id))
            if registered is None or registered.epoch != broker.server.lifecycle.epoch:
                continue  # it is about to leave the in-sync replicas
            replica = broker.server.parts.replicas.find_by_id(partition.topic_id, partition.index)
            if broker.node_id in state.isr and replica is not None and replica.log.failure is None:
                end_offset = replica.log.log_end_offset
                if end_offset < high_watermark:
                    self._report(
                        f"in sync: {tp} on {broker.name} ends at {end_offset}, the high watermark is {high_watermark}"
                    )

    # Logs

    def check_logs(self) -> None:
        """Compare the logs of all running brokers, batch by batch."""
        logs: dict[TopicPartition, list[tuple[str, Partition, list[_Batch]]]] = {}
        for broker in self._running():
            assert broker.server is not None
            for partition in broker.server.parts.replicas:
                tp = TopicPartition(partition.topic, partition.index)
                if (
                    tp.topic in (PLAIN, IDLE)
                    and partition.log.failure is None
                    and tp not in self._survivors.damaged
                ):
                    batches = _batches(partition)
                    logs.setdefault(tp, []).append((broker.name, partition, batches))
                    self._check_epochs(tp, broker.name, batches)
        for tp, replicas in logs.items():
            if (
                self._survivors.lost_before_s(tp.topic, tp.partition) < 0
            ):  # else the leader may lack what others have
                self._compare(tp, replicas)

    def _check_epochs(self, tp: TopicPartition, name: str, batches: Sequence[_Batch]) -> None:
        """Epochs rise along the log, and only one leader writes in an epoch."""
        epoch, end_offset = -1, -1
        for batch in batches:
            base_offset, last_offset, batch_epoch, _ = batch
            if batch_epoch < epoch:
                self._report(f"epochs: {tp} on {name} has {batch_epoch} after {epoch} at {base_offset}")
            if base_offset <= end_offset:
                self._report(f"offsets: {tp} on {name} has {base_offset} after {end_offset}")
            epoch, end_offset = batch_epoch, last_offset
            written, first = self._written.setdefault((tp, batch_epoch, base_offset), (batch, name))
            # A broker that is alone keeps its epoch, although it may have lost records.
            if written != batch and len(self._brokers) > 1:
                self._report(
                    f"two leaders: {tp} offset {base_offset}, epoch {batch_epoch} is not the same on {first} and {name}"
                )

    def _compare(
        self, tp: TopicPartition, replicas: Sequence[tuple[str, Partition, Sequence[_Batch]]]
    ) -> None:
        """Below the smallest high watermark the logs are equal."""
        bound = min(partition.log.high_watermark for _, partition, _ in replicas)
        start = max(partition.log.log_start_offset for _, partition, _ in replicas)
        first_name, _, first = replicas[0]
        expected = [batch for batch in first if start <= batch[0] and batch[1] < bound]
        for name, _, batches in replicas[1:]:
            found = [batch for batch in batches if start <= batch[0] and batch[1] < bound]
            if found != expected:
                differing = min(set(found) ^ set(expected))
                self._report(f"logs: {tp} differs on {first_name} and {name} at offset {differing[0]}")
        self._compare_producers(tp, replicas)

    def _compare_producers(
        self, tp: TopicPartition, replicas: Sequence[tuple[str, Partition, Sequence[_Batch]]]
    ) -> None:
        """Replicas with the same last batch know the same producers: else a new leader refuses or forgets records."""
        first: dict[tuple[int, int, _Batch | None], tuple[str, _Producers]] = {}
        for name, partition, batches in replicas:
            for producer_id in _disordered_producers(partition):
                self._report(f"producers: {tp} on {name} has batches of {producer_id} in no order")
            log, producers = partition.log, _producers(partition)
            ends = log.log_start_offset, log.log_end_offset, batches[-1] if batches else None
            first_name, expected = first.setdefault(ends, (name, producers))
            for producer_id in sorted({*producers, *expected}):
                known, other = expected.get(producer_id), producers.get(producer_id)
                if known != other:
                    self._report(
                        f"producers: {tp} on {first_name} has {known} of producer {producer_id}, {name} has {other}"
                    )

    # In a quiet phase

    def unfinished(self, down: int | None = None) -> list[str]:
        """Return what must still happen before all is well, while one broker may be `down`."""
        expected = [broker for broker in self._brokers if broker.node_id != down]
        found = [f"{broker.name} is down" for broker in expected if broker.server is None]
        for topic in self._image.topics.values():
            for index in range(topic.partition_count):
                if (
                    TopicPartition(topic.name, index) not in self._survivors.damaged
                ):  # else it cannot be copied
                    found += self._unfinished_partition(topic, index, down)
        if down is None:
            notes = self._image.deleted_topics.values()
            found += [
                f"the deletion of {topic.name} is not complete on brokers {topic.brokers}" for topic in notes
            ]
        for broker in self._running():
            assert broker.server is not None
            revision = broker.server.parts.metadata.image.revision
            if revision < self._store.revision - 20:
                found.append(f"{broker.name} is at revision {revision} of {self._store.revision}")
        return found

    def _unfinished_partition(self, topic: TopicImage, index: int, down: int | None) -> Iterator[str]:
        state = self._image.partition(topic, index)
        if topic.name == RECYCLED.topic and {*state.isr, *state.elr} == {down}:
            return  # the others could not follow while it was in the trash
        if (
            topic.name == RECYCLED.topic
            and self._loses_power
            and not {*state.isr, *state.elr, *state.last_known_elr}
        ):
            return  # the last replica in sync has lost the directory of its log, and stays offline
        expected = {replica for replica in state.replicas if replica != down}
        up = {broker.broker_id for broker in self._image.brokers.values() if not broker.fenced}
        if expected and state.leader not in up - {down}:
            yield f"{topic.name}-{index} has no leader: {state}"
        elif expected and set(state.isr) != expected:
            yield f"{topic.name}-{index} is not in sync: {state}"

    def check_end(self, *, is_torn: bool) -> None:
        """Check what must be true when no application has done anything for a long time.

        :param is_torn: Transactions may be open for ever, because their coordinator has lost them.
        """
        self.check()
        self.check_logs()
        for broker in self._running():
            assert broker.server is not None
            for partition in broker.server.parts.replicas:
                if TopicPartition(partition.topic, partition.index) in self._survivors.damaged:
                    continue
                log, name = partition.log, f"{partition.topic}-{partition.index} on {broker.name}"
                if partition._waiting_for_high_watermark:
                    self._report(f"waits: {name} has requests that wait for the high watermark")
                if (
                    partition.is_leader
                    and not is_torn
                    and not (log.last_stable_offset == log.high_watermark == log.log_end_offset)
                ):
                    self._report(
                        f"waits: {name} ends at {log.log_end_offset}, its high watermark is {log.high_watermark}, "
                        f"its last stable offset {log.last_stable_offset}"
                    )
            log_manager = broker.server.parts.log_manager
            recently_ms = log_manager.clock.monotonic_ms() - DELETION_MS
            soon_deleted = {path for due_ms, path in log_manager.deletions._scheduled if due_ms > recently_ms}
            for path in self._disks.directory(broker.name).iterdir():
                if path.is_dir() and path not in soon_deleted and not self._is_needed(broker, path):
                    self._report(f"directory: {path.name} on {broker.name} is not needed")

    def _is_needed(self, broker: SimulatedBroker, path: Path) -> bool:
        tp = parse_partition(path.name)
        if tp is not None:
            topic = self._image.topics.get(tp.topic)
            return topic is not None and broker.node_id in self._image.partition(topic, tp.partition).replicas
        stray = _STRAY.fullmatch(path.name)
        if stray is None:
            return False
        topic_name, index, topic_id = stray.groups()
        may_be_stray = self._loses_power or broker.name in self._disks.have_failed
        was_moved = (topic_name, int(index), broker.node_id) in self._moved_away
        return may_be_stray or was_moved or topic_id in self._image.trashed_topics


def _batches(partition: Partition) -> list[_Batch]:
    """Return the batches of a log as the files have them."""
    found: list[_Batch] = []
    for path in sorted(partition.log.directory.glob("*.log")):
        for _, header in iterate_headers(path.read_bytes()):
            if header.base_offset < partition.log.log_end_offset:
                batch = (header.base_offset, header.last_offset, header.partition_leader_epoch, header.crc)
                found.append(batch)
    return found


def _producers(partition: Partition) -> _Producers:
    return {
        entry.producer_id: (
            entry.producer_epoch,
            entry.last_sequence,
            entry.batches[-1].last_offset if entry.batches else -1,
            entry.current_txn_start_offset,
        )
        for entry in partition.log.producers.states.entries
    }


def _disordered_producers(partition: Partition) -> list[int]:
    """Return the producers with remembered batches that do not follow each other."""
    return [
        entry.producer_id
        for entry in partition.log.producers.states.entries
        for before, after in pairwise(entry.batches)
        if before.last_offset >= after.last_offset or before.last_sequence >= after.last_sequence
    ]
