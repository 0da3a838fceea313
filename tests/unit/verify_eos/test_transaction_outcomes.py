"""The outcome of each record's transaction, from the markers after it."""

import random

from barnabas.verify_eos.transaction_outcomes import TransactionOutcome, TransactionOutcomes
from barnabas.wire.records.control import EndTransactionMarker, encode_end_marker
from barnabas.wire.records.record import Record, encode_batch


class Log:
    """A partition that is written batch by batch."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.next_offset = 0

    def write(self, count: int = 1, producer_id: int = -1, *, transactional: bool = False) -> range:
        batch = encode_batch(
            [Record(0, 0, None, b"v") for _ in range(count)],
            base_offset=self.next_offset,
            producer_id=producer_id,
            transactional=transactional,
        )
        return self._append(batch, count)

    def end(self, producer_id: int, *, commit: bool) -> range:
        batch = encode_end_marker(EndTransactionMarker(producer_id, 0, 0, commit, 0))
        batch[:8] = self.next_offset.to_bytes(8)
        return self._append(batch, 1)

    def _append(self, batch: bytearray, count: int) -> range:
        self.data += batch
        offsets = range(self.next_offset, self.next_offset + count)
        self.next_offset += count
        return offsets


def outcomes_of(log: Log) -> dict[int, TransactionOutcome]:
    outcomes = TransactionOutcomes()
    outcomes.take(bytes(log.data))
    return outcomes.by_offset


def test_a_marker_ends_only_its_producers_transaction() -> None:
    log = Log()
    first = log.write(2, 7, transactional=True)
    second = log.write(1, 8, transactional=True)
    plain = log.write(1, 9)
    log.end(7, commit=False)
    third = log.write(1, 7, transactional=True)
    log.end(8, commit=True)
    expected = dict.fromkeys(first, TransactionOutcome.ABORTED) | dict.fromkeys(
        third, TransactionOutcome.OPEN
    )
    expected |= dict.fromkeys([*second, *plain], TransactionOutcome.COMMITTED)
    assert outcomes_of(log) == expected


def test_markers_without_a_transaction_are_skipped() -> None:
    log = Log()
    log.end(7, commit=True)
    only = log.write(1, 7, transactional=True)
    assert outcomes_of(log) == dict.fromkeys(only, TransactionOutcome.OPEN)


def test_any_history_is_evaluated_in_chunks_of_any_size() -> None:
    rng = random.Random(98)
    for _ in range(50):
        log, outcomes = Log(), TransactionOutcomes()
        expected: dict[int, TransactionOutcome] = {}
        open_offsets: dict[int, list[int]] = {}
        for _ in range(40):
            producer_id, log.data = rng.randrange(4), bytearray()
            if rng.random() < 0.3:
                commit = rng.random() < 0.5
                log.end(producer_id, commit=commit)
                outcome = TransactionOutcome.COMMITTED if commit else TransactionOutcome.ABORTED
                expected.update(dict.fromkeys(open_offsets.pop(producer_id, []), outcome))
            else:
                offsets = log.write(rng.randint(1, 3), producer_id, transactional=True)
                open_offsets.setdefault(producer_id, []).extend(offsets)
                expected.update(dict.fromkeys(offsets, TransactionOutcome.OPEN))
            outcomes.take(bytes(log.data))
        assert outcomes.by_offset == expected
