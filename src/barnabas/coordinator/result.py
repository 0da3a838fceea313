"""What an event leads to: records to append, answers to give, timers to set. No IO."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.wire.coordinator_records.serde import AnyRecord, EncodedRecord
from barnabas.wire.coordinator_records.serde import CoordinatorRecord as CoordinatorRecord
from barnabas.wire.errors import KafkaError
from barnabas.wire.schema import Message

ResponseT = TypeVar("ResponseT")

#: Names a timer of a shard: setting one again moves it. The first element says what it is for.
TimerKey: TypeAlias = tuple[Hashable, ...]


class TransactionalProducer(NamedTuple):
    """Whose transaction the records of a step belong to."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    #: That the transaction includes our partition, for its first records there (KIP-890).
    verification: VerificationGuard | None = None


class Pending(Generic[ResponseT]):
    """A request that waits for its answer, which perhaps a later event brings."""

    __slots__ = ("label",)

    def __init__(self, label: str = "") -> None:
        self.label = label  #: for people, in tests and statistics

    def __repr__(self) -> str:
        return f"<pending {self.label}>"


class Answer(NamedTuple):
    """The answer to a pending request: a response, or the error that its handler is to raise."""

    pending: Pending[Any]
    response: Any


class Timer(NamedTuple):
    """Something to come back to; without a delay a timer is cancelled."""

    key: TimerKey
    delay_ms: int | None


@dataclass(slots=True)
class CoordinatorResult:
    """Collects what one event leads to; all of it is done, or, when the records cannot be appended, none.

    The answers are given when the records are on every in-sync replica.
    """

    now_ms: int  #: wall time of the event
    records: list[AnyRecord] = field(
        default_factory=list
    )  #: appended as one batch, unless `is_atomic` is taken off
    answers: list[Answer] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    #: what is to be done outside of the shard once the records are stored; the coordinator's owner knows how
    effects: list[Any] = field(default_factory=list)
    producer: TransactionalProducer | None = None
    #: whether the records must stand in one batch; others may be more than one batch can hold
    is_atomic: bool = True
    #: what the event leads to instead when the records cannot be appended; the asker otherwise gets the error
    otherwise: "Callable[[CoordinatorResult, KafkaError], None] | None" = None

    def append(self, key: Message, value: Message | None, value_version: int | None = None) -> None:
        """Append a record, a tombstone without a value; it takes effect by being replayed."""
        self.records.append(CoordinatorRecord(key, value, value_version))

    def append_encoded(self, key: bytes, value: bytes | None) -> None:
        """Append a record whose bytes are known."""
        self.records.append(EncodedRecord(key, value))

    def answer(self, pending: Pending[ResponseT], response: ResponseT) -> None:
        """Answer a request."""
        self.answers.append(Answer(pending, response))

    def refuse(self, pending: Pending[Any], error: KafkaError) -> None:
        """Answer a request by an error."""
        self.answers.append(Answer(pending, error))

    def do(self, effect: object) -> None:
        """Have something done outside of the shard."""
        self.effects.append(effect)

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        """Come back after a while; the shard's `expire` is called with the key then."""
        self.timers.append(Timer(key, delay_ms))

    def cancel_timer(self, key: TimerKey) -> None:
        """Do not come back."""
        self.timers.append(Timer(key, None))
