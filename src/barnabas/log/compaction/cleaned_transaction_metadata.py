"""Tracks transactions while compaction reads a log: which records were aborted, which markers can be discarded."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.columns import RecordColumns
from barnabas.wire.records.control import ControlType, control_type


class _Ongoing(NamedTuple):
    transaction: AbortedTransaction
    has_batches: bool


class CleanedTransactionState(NamedTuple):
    """The state of `CleanedTransactionMetadata` at the start of a segment, from which another instance can continue."""

    begun_count: int
    aborted: dict[int, _Ongoing]
    committed: set[int]


class CleanedTransactionMetadata:
    """Must see every batch in log order. A marker is kept until all batches of its transaction are removed."""

    def __init__(
        self, aborted: Iterable[AbortedTransaction], state: CleanedTransactionState | None = None
    ) -> None:
        """Start at the start of the log, or continue from the state of an instance with the same `aborted`."""
        begun_count, ongoing, committed = state or (0, {}, set())
        in_order = sorted(aborted, key=lambda transaction: transaction.first_offset)
        self._upcoming = in_order[begun_count:][::-1]
        self._count = len(in_order)
        self._aborted: dict[int, _Ongoing] = dict(ongoing)
        self._committed: set[int] = set(committed)
        #: Aborted transactions whose markers are kept, since the last call of `take_retained`.
        self._retained: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._aborted.get(header.producer_id)
        if ongoing is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = ongoing._replace(has_batches=True)
        return True

    def can_discard(self, header: BatchHeader, marker_type: ControlType | None) -> bool:
        """Whether a marker can be discarded because no batch of its transaction is left."""
        self._begin_up_to(header.last_offset)
        if marker_type is None:
            return True
        if marker_type is ControlType.ABORT:
            ongoing = self._aborted.pop(header.producer_id, None)
            if ongoing is None or not ongoing.has_batches:
                return True
            self._retained.append(ongoing.transaction)
            return False
        if marker_type is ControlType.COMMIT:
            has_no_batches = header.producer_id not in self._committed
            self._committed.discard(header.producer_id)
            return has_no_batches
        return False

    @property
    def state(self) -> CleanedTransactionState:
        """The current state, without the result of `take_retained`."""
        return CleanedTransactionState(
            self._count - len(self._upcoming), dict(self._aborted), set(self._committed)
        )

    def take_retained(self) -> list[AbortedTransaction]:
        """Return the aborted transactions whose markers were kept since the last call."""
        retained, self._retained = self._retained, []
        return retained

    def _begin_up_to(self, offset: int) -> None:
        while self._upcoming and self._upcoming[-1].first_offset <= offset:
            transaction = self._upcoming.pop()
            self._aborted.setdefault(transaction.producer_id, _Ongoing(transaction, has_batches=False))


def control_type_of(columns: RecordColumns, batch: int) -> ControlType | None:
    """Return the type of a control batch's first record; None if the batch is empty."""
    row = columns.first_rows[batch]
    return None if row == columns.first_rows[batch + 1] else control_type(columns.key(row))
