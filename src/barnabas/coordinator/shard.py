"""What a coordinator keeps of one partition of its internal topic: pure state that events and records change."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from barnabas.coordinator.result import CoordinatorResult, TimerKey
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.serde import AnyRecord
from barnabas.wire.records.batch import NO_PRODUCER_ID
from barnabas.wire.records.control import EndTransactionMarker


class RecordPosition(NamedTuple):
    """Where a record stands in its partition, and who wrote it."""

    offset: int
    timestamp_ms: int
    producer_id: int = NO_PRODUCER_ID  #: of the transaction that it belongs to
    producer_epoch: int = -1


class Shard(Protocol):
    """Events decide, `replay` changes what is stored; neither does IO.

    An event may change at once only what is never stored (who waits, who is heard of). Whatever an event wants stored
    it appends to its step: `replay` gets it when it stands in the log, and again after each restart. `replay` never
    fails.
    """

    def replay(self, record: AnyRecord, position: RecordPosition) -> None:
        """Take over a record that stands in the log."""

    def replay_end_marker(self, marker: EndTransactionMarker) -> None:
        """Take over that a producer's transaction has ended."""

    def loaded(self, step: CoordinatorResult) -> None:
        """Everything has been replayed, and requests come from now on: set timers."""

    def expire(self, step: CoordinatorResult, key: TimerKey) -> None:
        """A timer is due."""

    @property
    def follows_cluster(self) -> bool:
        """Whether the shard needs metadata updates."""

    def on_metadata_update(
        self, step: CoordinatorResult, before: MetadataImage, after: MetadataImage
    ) -> None:
        """Topics or group configs have changed."""

    def unload(self) -> None:
        """Another broker takes over: those who wait have been told."""

    def statistics(self) -> Mapping[str, object]:
        """What there is, for people."""
