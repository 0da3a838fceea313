"""Transactions as compaction meets them on its way through a log: which records were aborted, which markers may go."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.columns import RecordColumns
from barnabas.wire.records.control import ControlType, control_type


class _Ongoing(NamedTuple):
    transaction: AbortedTransaction
    has_batches: bool


class TransactionsSoFar(NamedTuple):
    """What `CleanedTransactionMetadata` know where a segment begins, for others to go on there."""

    begun_count: int
    aborted: dict[int, _Ongoing]
    committed: set[int]


class CleanedTransactionMetadata:
    """Told of every batch in the order of the log. Markers stay until all batches of their transaction are gone."""

    def __init__(
        self, aborted: Iterable[AbortedTransaction], so_far: TransactionsSoFar | None = None
    ) -> None:
        """Begin with a log, or go on with it from where others were `so_far`, which were told of the same."""
        begun_count, ongoing, committed = so_far or (0, {}, set())
        in_order = sorted(aborted, key=lambda transaction: transaction.first_offset)
        self._to_come = in_order[begun_count:][::-1]
        self._count = len(in_order)
        self._aborted: dict[int, _Ongoing] = dict(ongoing)
        self._committed: set[int] = set(committed)
        #: Aborted transactions whose markers stay, since `take_retained` was last asked.
        self._retained: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of data belongs to a transaction that was aborted."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._aborted.get(header.producer_id)
        if ongoing is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = ongoing._replace(has_batches=True)
        return True

    def can_discard(self, header: BatchHeader, what: ControlType | None) -> bool:
        """Whether a marker can be discarded because no batch of its transaction is left."""
        self._begin_up_to(header.last_offset)
        if what is None:
            return True
        if what is ControlType.ABORT:
            ongoing = self._aborted.pop(header.producer_id, None)
            if ongoing is None or not ongoing.has_batches:
                return True
            self._retained.append(ongoing.transaction)
            return False
        if what is ControlType.COMMIT:
            is_spent = header.producer_id not in self._committed
            self._committed.discard(header.producer_id)
            return is_spent
        return False

    @property
    def so_far(self) -> TransactionsSoFar:
        """What is known now; `take_retained` is the caller's."""
        return TransactionsSoFar(self._count - len(self._to_come), dict(self._aborted), set(self._committed))

    def take_retained(self) -> list[AbortedTransaction]:
        """The aborted transactions whose markers were kept since this was last asked."""
        retained, self._retained = self._retained, []
        return retained

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            transaction = self._to_come.pop()
            self._aborted.setdefault(transaction.producer_id, _Ongoing(transaction, has_batches=False))


def control_type_of(columns: RecordColumns, batch: int) -> ControlType | None:
    """The type of a control batch's first record; None of an empty batch."""
    row = columns.first_rows[batch]
    return None if row == columns.first_rows[batch + 1] else control_type(columns.key(row))
