"""Transactions as compaction meets them on its way through a log: which records were aborted, which markers may go."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.log.transaction_index import AbortedTransaction
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.columns import RecordColumns
from barnabas.wire.records.control import ControlType, control_type


class _Ongoing(NamedTuple):
    transaction: AbortedTransaction
    has_batches: bool


class CleanedTransactions:
    """Told of every batch in the order of the log. Markers stay until all batches of their transaction are gone."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborted: dict[int, _Ongoing] = {}
        self._committed: set[int] = set()
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

    def is_spent(self, header: BatchHeader, what: ControlType | None) -> bool:
        """Whether a control batch marks a transaction of which no batch is left; it has a record unless it is empty."""
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
