"""Committed offsets without a broker: fake groups, results, and records that are replayed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from barnabas.base.ids import ZERO_UUID
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.coordinator.shard import RecordPosition, Step
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.group import CommitCheck
from barnabas.groups.offsets.manager import OffsetManager
from barnabas.groups.statistics import GroupCounts
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset, decode_partition, decode_value
from barnabas.wire.coordinator_records.serde import EncodedRecord
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.records.batch import NO_PRODUCER_ID
from barnabas.wire.records.control import EndTransactionMarker
from support.nodes import config_of

#: topic -> index -> offset, or (offset, leader epoch, text)
Offsets = dict[str, dict[int, Any]]


@dataclass
class FakeGroup:
    """A group whose checks return what the test sets."""

    group_id: str
    group_type: str = "classic"
    state_name: str = "Empty"
    protocol_type: str = ""
    is_empty: bool = True
    offsets_may_expire: bool = True
    unused_since_ms: int | None = None
    subscribed: frozenset[str] = frozenset()
    refusal: KafkaError | None = None  #: error of commits, fetches and deletions alike
    commit_check: CommitCheck | None = None
    committers: list[str] = field(default_factory=list)
    tombstones_count: int = 0

    def check_offset_commit(self, *_: Any, **__: Any) -> CommitCheck | None:
        self._refuse()
        return self.commit_check

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._refuse()

    def check_offset_deletion(self) -> None:
        self._refuse()

    def check_deletion(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def on_commit(self, result: CoordinatorResult, member_id: str) -> None:
        self.committers.append(member_id)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def offsets_unused_since_ms(self) -> int | None:
        return self.unused_since_ms

    def append_tombstones(self, result: CoordinatorResult) -> None:
        self.tombstones_count += 1


class OffsetLog:
    """An `OffsetManager` and its log; each result's records are replayed."""

    def __init__(self, image: MetadataImage | None = None, **config: str) -> None:
        self.groups: dict[str, Any] = {}
        self.image = image or MetadataImage()
        self.config = config_of(Path("nowhere"), **config)
        self.log: list[tuple[EncodedRecord, RecordPosition] | EndTransactionMarker] = []
        self.now_ms = 1_000
        self.counts = GroupCounts()
        self.manager = self._new_manager()

    def _new_manager(self) -> OffsetManager:
        context = GroupCoordinatorContext(lambda: self.config, lambda: self.image, Random(0), self.counts)
        return OffsetManager(self.groups, context, self.make_simple_group)

    def make_simple_group(self, group_id: str) -> None:
        self.groups[group_id] = FakeGroup(group_id)

    def do(
        self,
        event: Callable[[CoordinatorResult, Pending[Any]], None],
        producer: tuple[int, int] = (NO_PRODUCER_ID, -1),
    ) -> Any:
        """Return the response to an event and replay its records; None without a response."""
        result, pending = CoordinatorResult(self.now_ms), Pending[Any]()
        event(result, pending)
        for record in result.records:
            assert isinstance(record, EncodedRecord)
            tp = RecordPosition(len(self.log), self.now_ms, *producer)
            self.log.append((record, tp))
            self.manager.replay(record, tp)
        self.manager.table.validate()
        self.last = result
        return result.responses[0].response if result.responses else None

    def run_step(self, step: Step) -> None:
        self.do(lambda result, pending: step(result))

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Handle a changed image."""
        for step in self.manager.on_metadata_update(before, after):
            self.run_step(step)

    def catch_up(self, before: MetadataImage) -> None:
        """Handle deletions of topics after a restart; `before` is the image when loading began."""
        for step in self.manager.catch_up(before):
            self.run_step(step)

    def end(self, producer_id: int, *, commit: bool) -> None:
        """Replay a marker that ends a producer's transaction."""
        marker = EndTransactionMarker(producer_id, 0, 0, commit, self.now_ms)
        self.log.append(marker)
        self.manager.replay_transaction_marker(marker)
        self.manager.table.validate()

    def reload(self) -> None:
        """Restart from the log."""
        self.groups.clear()
        self.manager = self._new_manager()
        for entry in self.log:
            if isinstance(entry, EndTransactionMarker):
                self.manager.replay_transaction_marker(entry)
            else:
                self.manager.replay(*entry)
        self.manager.table.validate()

    def commit(
        self, offsets: Offsets, group_id: str = "g", *, version: int = 9, **fields: Any
    ) -> dict[Any, int]:
        """Return (topic, index) -> error code."""
        request = OffsetCommitRequest(group_id=group_id, topics=commit_topics(offsets), **fields)
        return codes(self.do(lambda result, pending: self.manager.commit(result, pending, request, version)))

    def commit_in_transaction(
        self, producer_id: int, offsets: Offsets, group_id: str = "g", *, version: int = 5, **fields: Any
    ) -> dict[Any, int]:
        """Return (topic, index) -> error code."""
        topics = [
            TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[
                    TxnOffsetCommitRequestPartition(index, *parts(each)) for index, each in indexes.items()
                ],
            )
            for name, indexes in offsets.items()
        ]
        request = TxnOffsetCommitRequest("t", group_id, producer_id, 0, topics=topics, **fields)
        manager = self.manager
        answer = self.do(
            lambda result, pending: manager.commit_in_transaction(result, pending, request, version),
            (producer_id, 0),
        )
        return codes(answer)

    def fetch(self, group_id: str = "g", *, require_stable: bool = False, **fields: Any) -> dict[Any, Any]:
        """Return (topic, index) -> offset of all offsets, or the negated error code."""
        requested = OffsetFetchRequestGroup(group_id=group_id, topics=None, **fields)
        return found(self.manager.fetch(requested, require_stable=require_stable))

    def fetch_these(
        self,
        indexes: dict[str, list[int]],
        group_id: str = "g",
        *,
        topic_id: bytes = ZERO_UUID,
        stable: bool = False,
    ) -> OffsetFetchResponseGroup:
        """Return the response about some partitions."""
        topics = [OffsetFetchRequestTopics(name, topic_id, each) for name, each in indexes.items()]
        requested = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
        return self.manager.fetch(requested, require_stable=stable)

    def stored(self, group_id: str = "g") -> dict[tuple[str, int], CommittedOffset]:
        """Return the committed offsets with all their fields."""
        offsets = self.manager.table.of_group(group_id)
        return {decode_partition(where): decode_value(value) for where, (_, value) in offsets.items()}


def parts(offset: Any) -> tuple[Any, ...]:
    return offset if isinstance(offset, tuple) else (offset,)


def commit_topics(offsets: Offsets) -> list[OffsetCommitRequestTopic]:
    """Build the topics of an OffsetCommit request."""
    made = []
    for name, indexes in offsets.items():
        partitions = []
        for index, each in indexes.items():
            offset, epoch, text = each if isinstance(each, tuple) else (each, -1, "")
            requested = OffsetCommitRequestPartition(index, offset, epoch, committed_metadata=text)
            partitions.append(requested)
        made.append(OffsetCommitRequestTopic(name=name, partitions=partitions))
    return made


def codes(response: Any) -> dict[tuple[str, int], int]:
    """Return (topic, index) -> error code of any response about partitions."""
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


def found(group: Any) -> dict[tuple[str, int], Any]:
    """Return (topic, index) -> offset, or the error code as text."""
    return {
        (topic.name, each.partition_index): f"error {each.error_code}"
        if each.error_code
        else each.committed_offset
        for topic in group.topics
        for each in topic.partitions
    }
