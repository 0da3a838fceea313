"""One partition of `__transaction_state`: its transactional ids."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from barnabas.base.ids import TopicPartition
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, Pending, TimerKey
from barnabas.coordinator.shard import RecordPosition, Step
from barnabas.metadata.image import MetadataImage
from barnabas.telemetry.logs import get_logger
from barnabas.transactions.end_txn import EndTxn, complete, decide_end, fenced
from barnabas.transactions.errors import concurrent
from barnabas.transactions.initialization import Initialization, decide_initialize
from barnabas.transactions.listing import Filter
from barnabas.transactions.partitions import Addition, decide_add, verify
from barnabas.transactions.states import TransactionState
from barnabas.transactions.statistics import TransactionCounts, TransactionStatistics
from barnabas.transactions.transaction import TAGGED_FIELDS_LEVEL, TransactionMetadata
from barnabas.wire.coordinator_records.serde import AnyRecord
from barnabas.wire.coordinator_records.transaction_log import TransactionLogKey, TransactionLogValue
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.control import EndTransactionMarker

#: Maximum of expired ids that are removed before other clients are served.
REMOVED_AT_ONCE_MAX = 500

#: Pause before a failed completion is retried.
RETRY_MS = 100

_SWEEP_TIMEOUTS = ("abort timed out transactions",)
_ABORT_NEXT = ("abort the next timed out transaction",)
_SWEEP_EXPIRED = ("remove expired transactional ids",)
_COMPLETE = "complete"

_FEATURE = "transaction.version"

_log = get_logger("barnabas.transactions")


@dataclass(frozen=True, slots=True)
class TransactionCoordinatorContext:
    """The environment of transactions: configuration, metadata, producer ids, counters."""

    config: Callable[[], BrokerConfig]  #: returns the present configuration
    image: Callable[[], MetadataImage]  #: returns the present image
    #: returns a new producer id; raises COORDINATOR_LOAD_IN_PROGRESS while there is none
    next_producer_id: Callable[[], int]
    counts: TransactionCounts = field(default_factory=TransactionCounts)

    @property
    def level(self) -> int:
        return self.image().finalized_features.get(_FEATURE, 0)


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """Requested outside the shard: write the markers of a transaction.

    Then call `TransactionShard.markers_written`.
    """

    transaction: TransactionMetadata


@dataclass(frozen=True, slots=True)
class GetProducerIds:
    """Requested outside the shard: allocate producer ids for later calls of `next_producer_id`."""


class TransactionShard:
    """The transactional ids of one partition."""

    needs_metadata_updates = False

    def __init__(self, context: TransactionCoordinatorContext) -> None:
        self.context = context
        self.transactions: dict[str, TransactionMetadata] = {}
        #: (transactional id, start) of transactions that began in the future -> when that was seen
        self._ahead: dict[tuple[str, int], int] = {}
        #: transactions that have exceeded their timeout, found by the last check
        self._to_abort: deque[TransactionMetadata] = deque()
        #: transactional id -> the transaction whose markers are written, but whose completion could not be appended
        self._incomplete: dict[str, TransactionMetadata] = {}
        #: transactional id -> the transaction to replay when the last event is written, and the record's value to
        #: recognize it
        self._decided: dict[str, tuple[TransactionLogValue, TransactionMetadata]] = {}

    # Events

    def initialize(
        self, result: CoordinatorResult, pending: Pending[TransactionMetadata], request: Initialization
    ) -> None:
        """Handle an InitProducerId.

        :raises KafkaError: CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, COORDINATOR_LOAD_IN_PROGRESS.
        """
        context = self.context
        transaction = self.transactions.get(request.transactional_id)
        decided = decide_initialize(
            transaction, request, result.now_ms, context.level, context.next_producer_id
        )
        self._write(result, decided)
        if not decided.is_prepared:
            result.answer(pending, decided)
            return
        result.do(WriteMarkers(decided))
        result.fail(pending, concurrent(decided))

    def add_partitions(self, result: CoordinatorResult, pending: Pending[None], addition: Addition) -> None:
        """Add partitions to a transaction, which begins with the first.

        :raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        decided = decide_add(self.transactions.get(addition.transactional_id), addition, result.now_ms)
        if decided is not None:
            self._write(result, decided)
        result.answer(pending, None)

    def verify_partitions(self, addition: Addition) -> Mapping[TopicPartition, ErrorCode]:
        """Return whether partitions are in a producer's open transaction.

        :raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        return verify(self.transactions.get(addition.transactional_id), addition)

    def end(self, result: CoordinatorResult, pending: Pending[TransactionMetadata], request: EndTxn) -> None:
        """Handle an EndTxn; the response is the producer's new id and epoch.

        :raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE,
            COORDINATOR_LOAD_IN_PROGRESS.
        """
        transaction = self.transactions.get(request.transactional_id)
        decided = decide_end(transaction, request, result.now_ms, self.context.next_producer_id)
        if decided is None:
            assert transaction is not None
            result.answer(pending, transaction)
            return
        self._write(result, decided)
        result.answer(pending, complete(decided, result.now_ms))
        result.do(WriteMarkers(decided))

    def markers_written(self, result: CoordinatorResult, prepared: TransactionMetadata) -> None:
        """Complete a transaction whose markers are written."""
        transactional_id = prepared.transactional_id
        transaction = self.transactions.get(transactional_id)
        if transaction != prepared:
            return  # a repeated notification
        self._write(result, complete(transaction, result.now_ms))

        def retry(instead: CoordinatorResult, error: KafkaError) -> None:
            self._incomplete[transactional_id] = prepared
            instead.set_timer((_COMPLETE, transactional_id), RETRY_MS)

        result.on_append_error = retry

    # Stored state

    def _write(self, result: CoordinatorResult, decided: TransactionMetadata) -> None:
        value_version = 1 if self.context.level >= TAGGED_FIELDS_LEVEL else 0
        value = decided.value()
        result.append(decided.key, value, value_version)
        self._decided[decided.transactional_id] = value, decided

    def replay(self, record: AnyRecord, position: RecordPosition) -> None:
        """Apply a record of the log."""
        key, value = record.key, record.value
        assert isinstance(key, TransactionLogKey)
        written, decided = self._decided.pop(key.transactional_id, (None, None))
        if value is None:
            self.transactions.pop(key.transactional_id, None)
            return
        assert isinstance(value, TransactionLogValue)
        if decided is None or written is not value:
            decided = TransactionMetadata.of(key, value)
        self.transactions[key.transactional_id] = decided

    def replay_transaction_marker(self, marker: EndTransactionMarker) -> None:
        """Do nothing: this topic has no transactions itself."""

    # Timers

    def on_loaded(self, result: CoordinatorResult) -> None:
        """Continue the decisions of the previous coordinator."""
        for transaction in self.transactions.values():
            if transaction.is_prepared:
                result.do(WriteMarkers(transaction))
        self._retry(result, _SWEEP_TIMEOUTS)
        self._retry(result, _SWEEP_EXPIRED)

    def expire(self, result: CoordinatorResult, key: TimerKey) -> None:
        """Check for timeouts and expired ids, or retry a completion."""
        if key == _SWEEP_TIMEOUTS:
            self._to_abort = deque(self._timed_out(result.now_ms))
            self._schedule_abort(result)
            self._retry(result, key)
        elif key == _ABORT_NEXT:
            self._abort_next(result)
        elif key == _SWEEP_EXPIRED:
            self._remove_expired(result)
            self._retry(result, key)
            result.on_append_error = lambda instead, error: self._retry(instead, key)
        else:
            self.markers_written(result, self._incomplete.pop(str(key[1])))

    def _retry(self, result: CoordinatorResult, key: TimerKey) -> None:
        what = (
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            if key == _SWEEP_TIMEOUTS
            else "transaction.remove.expired.transaction.cleanup.interval.ms"
        )
        result.set_timer(key, self.context.config().integer(what))

    def _schedule_abort(self, result: CoordinatorResult) -> None:
        if self._to_abort:
            result.set_timer(_ABORT_NEXT, 0)

    def _abort_next(self, result: CoordinatorResult) -> None:
        """Abort one of the timed out transactions: none of them depends on the records of others."""
        if not self._to_abort:  # a check in between has found none
            return
        found = self._to_abort.popleft()
        self._schedule_abort(result)
        transaction = self.transactions.get(found.transactional_id)
        if (
            transaction is not None
            and transaction.state is TransactionState.ONGOING
            and transaction.started_ms == found.started_ms
        ):
            self._abort(result, transaction)

        def skip(instead: CoordinatorResult, error: KafkaError) -> None:
            if error.code.retriable:
                self._to_abort.clear()  # until the next check
            self._schedule_abort(instead)

        result.on_append_error = skip

    def _abort(self, result: CoordinatorResult, transaction: TransactionMetadata) -> None:
        context = self.context
        try:
            decided = fenced(transaction, result.now_ms, context.level, context.next_producer_id)
        except KafkaError:
            result.do(GetProducerIds())
            return  # aborted after a later check
        _log.info(
            "aborting a transaction that exceeded its timeout",
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            timeout_ms=transaction.timeout_ms,
        )
        context.counts.timed_out_count += 1
        self._write(result, decided)
        result.do(WriteMarkers(decided))

    def _timed_out(self, now_ms: int) -> list[TransactionMetadata]:
        """Return the transactions that have exceeded their timeout.

        One that began after the present time, because the clock of its former coordinator was ahead or this one was set
        back, ends as long after it was first seen.
        """
        found, ahead = [], {}
        for transaction in self.transactions.values():
            since_ms = transaction.started_ms
            if since_ms > now_ms and transaction.state is TransactionState.ONGOING:
                key = transaction.transactional_id, since_ms
                since_ms = ahead[key] = min(self._ahead.get(key, now_ms), now_ms)
            if transaction.is_timed_out(now_ms, since_ms):
                found.append(transaction)
        self._ahead = ahead
        return found

    def _remove_expired(self, result: CoordinatorResult) -> None:
        expiration_ms = self.context.config().integer("transactional.id.expiration.ms")
        unused = (
            idle for idle in self.transactions.values() if idle.is_expired(result.now_ms, expiration_ms)
        )
        for transaction in islice(unused, REMOVED_AT_ONCE_MAX):
            result.append(transaction.moved(TransactionState.DEAD).key, None)
            self.context.counts.expired_ids_count += 1
        result.is_atomic = False

    def catch_up(self, before: MetadataImage) -> Iterable[Step]:
        """Return nothing: transactions do not depend on topics."""
        return ()

    def on_metadata_update(self, before: MetadataImage, after: MetadataImage) -> Iterable[Step]:
        """Return nothing, for the same reason."""
        return ()

    def on_unloaded(self) -> None:
        """Do nothing: no requests wait."""

    # Queries

    def find(self, transactional_id: str) -> TransactionMetadata:
        """Return the state of a transactional id.

        :raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND.
        """
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            message = f"Transactional id '{transactional_id}' not found."
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, message)
        return transaction

    def matching(self, transaction_filter: Filter, now_ms: int) -> list[TransactionMetadata]:
        """Return the transactional ids that match the filter."""
        return [
            transaction
            for transaction in self.transactions.values()
            if transaction_filter.matches(transaction, now_ms)
        ]

    def statistics(self) -> TransactionStatistics:
        states = Counter(transaction.state.value for transaction in self.transactions.values())
        return {"transactional_ids_count": len(self.transactions), "transactional_ids": dict(states)}

    def validate(self) -> None:
        for transactional_id, transaction in self.transactions.items():
            assert transactional_id == transaction.transactional_id
            assert transaction.producer_epoch >= 0, transaction
            assert not transaction.partitions or transaction.state not in (
                TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
            ), transaction  # fmt: skip
