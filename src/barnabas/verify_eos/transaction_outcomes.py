"""Determines the outcome of every record of a partition from the transaction markers in its log (KIP-98). No IO."""

from collections import defaultdict
from enum import Enum

from barnabas.wire.records.batch import iterate_headers
from barnabas.wire.records.compression import Buffer
from barnabas.wire.records.control import read_end_marker
from barnabas.wire.records.record import decode_batch


class TransactionOutcome(Enum):
    """Whether a record is committed; a record outside any transaction is."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


class TransactionOutcomes:
    """The outcomes of a partition's records, from its log as read uncommitted from the start, with control batches."""

    def __init__(self) -> None:
        self.by_offset: dict[int, TransactionOutcome] = {}
        self._open: defaultdict[int, list[int]] = defaultdict(list)  #: producer id -> offsets

    def take(self, batches: Buffer) -> None:
        """Add the next batches.

        :raises KafkaError: CORRUPT_MESSAGE.
        """
        for start, header in iterate_headers(batches):
            if header.is_control:
                marker = read_end_marker(batches, start, header)
                if marker is not None:
                    transaction_outcome = (
                        TransactionOutcome.COMMITTED if marker.commit else TransactionOutcome.ABORTED
                    )
                    offsets = self._open.pop(marker.producer_id, [])
                    self.by_offset.update(dict.fromkeys(offsets, transaction_outcome))
                continue
            offsets = [record.offset for record in decode_batch(batches, start, header)]
            transaction_outcome = (
                TransactionOutcome.OPEN if header.is_transactional else TransactionOutcome.COMMITTED
            )
            self.by_offset.update(dict.fromkeys(offsets, transaction_outcome))
            if header.is_transactional:
                self._open[header.producer_id] += offsets
