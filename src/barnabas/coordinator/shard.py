"""A shard: the coordinator's state for one partition of its internal topic."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.coordinator.result import CoordinatorResult, TimerKey
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.serde import AnyRecord
from barnabas.wire.records.batch import NO_PRODUCER_ID
from barnabas.wire.records.control import EndTransactionMarker

#: A part of an event that may be long: other clients are served before the next one. It may be repeated.
Step: TypeAlias = Callable[[CoordinatorResult], None]


class RecordPosition(NamedTuple):
    """The position of a record in its partition, and its producer."""

    offset: int
    timestamp_ms: int
    producer_id: int = NO_PRODUCER_ID  #: of the transaction of the record
    producer_epoch: int = -1


class Shard(Protocol):
    """Events make decisions, and `replay` changes stored state; neither does IO.

    An event may directly change only state that is never stored, such as waiting requests. Everything else is appended
    to its result: `replay` gets the record when it is in the log, and again after each restart. `replay` never fails.
    """

    def replay(self, record: AnyRecord, position: RecordPosition) -> None:
        """Apply a record of the log."""

    def replay_transaction_marker(self, marker: EndTransactionMarker) -> None:
        """Apply a transaction marker that ends a producer's transaction."""

    def on_loaded(self, result: CoordinatorResult) -> None:
        """Set timers after the log has been replayed; requests follow."""

    def catch_up(self, before: MetadataImage) -> Iterable[Step]:
        """Return the steps that handle changes of the image since `before`, when loading began."""

    def expire(self, result: CoordinatorResult, key: TimerKey) -> None:
        """Handle a timer that is due."""

    @property
    def needs_metadata_updates(self) -> bool:
        """Whether the shard requires metadata updates."""

    def on_metadata_update(self, before: MetadataImage, after: MetadataImage) -> Iterable[Step]:
        """Return the steps that handle changes of topics or group configs."""

    def on_unloaded(self) -> None:
        """Handle the move to another broker; waiting requests have been answered."""

    def statistics(self) -> Mapping[str, object]:
        pass
