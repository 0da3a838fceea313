"""The result of an event: records to append, responses, timers. No IO."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.wire.coordinator_records.serde import AnyRecord, EncodedRecord
from barnabas.wire.coordinator_records.serde import CoordinatorRecord as CoordinatorRecord
from barnabas.wire.errors import KafkaError
from barnabas.wire.schema import Message

ResponseT = TypeVar("ResponseT")

#: Identifies a timer of a shard; setting it again moves it. The first element is its purpose.
TimerKey: TypeAlias = tuple[Hashable, ...]


class TransactionalProducer(NamedTuple):
    """The producer of a transaction to which records belong."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    #: proof that the transaction includes this partition, for its first records there (KIP-890)
    verification: VerificationGuard | None = None


class Pending(Generic[ResponseT]):
    """A request that waits for its response, which may come with a later event."""

    __slots__ = ("label",)

    def __init__(self, label: str = "") -> None:
        self.label = label  #: for tests and statistics

    def __repr__(self) -> str:
        return f"<pending {self.label}>"


class PendingResponse(NamedTuple):
    """The response to a pending request, or the error that its handler raises."""

    pending: Pending[Any]
    response: Any


class Timer(NamedTuple):
    """A timer to set; without a delay it is cancelled."""

    key: TimerKey
    delay_ms: int | None


@dataclass(slots=True)
class CoordinatorResult:
    """Collects the result of one event. It takes effect as a whole, or not at all if the records cannot be appended.

    Responses are sent when the records are on every in-sync replica.
    """

    now_ms: int  #: wall time of the event
    records: list[AnyRecord] = field(
        default_factory=list
    )  #: appended as one batch, unless `is_atomic` is False
    responses: list[PendingResponse] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    #: what to do outside the shard once the records are written; the owner of the coordinator interprets it
    effects: list[Any] = field(default_factory=list)
    producer: TransactionalProducer | None = None
    #: the records must be in one batch; others may be more than a batch can hold
    is_atomic: bool = True
    #: replaces the result if the records cannot be appended; by default the request gets the error
    on_append_error: "Callable[[CoordinatorResult, KafkaError], None] | None" = None

    def append(self, key: Message, value: Message | None, value_version: int | None = None) -> None:
        """Append a record, or a tombstone without a value; it takes effect by replay."""
        self.records.append(CoordinatorRecord(key, value, value_version))

    def append_encoded(self, key: bytes, value: bytes | None) -> None:
        self.records.append(EncodedRecord(key, value))

    def answer(self, pending: Pending[ResponseT], response: ResponseT) -> None:
        self.responses.append(PendingResponse(pending, response))

    def fail(self, pending: Pending[Any], error: KafkaError) -> None:
        """Respond to a request with an error."""
        self.responses.append(PendingResponse(pending, error))

    def do(self, effect: object) -> None:
        """Add something to do outside the shard."""
        self.effects.append(effect)

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        """Set a timer; the shard's `expire` is called with the key."""
        self.timers.append(Timer(key, delay_ms))

    def cancel_timer(self, key: TimerKey) -> None:
        self.timers.append(Timer(key, None))
