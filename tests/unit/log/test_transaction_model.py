"""Random transactions, read like a consumer of committed records does, compared with a list as the model."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.closing import close_log
from barnabas.log.log_config import LogConfig
from barnabas.log.open_log import open_log
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import iterate_headers
from barnabas.wire.records.control import EndTransactionMarker, read_end_marker
from barnabas.wire.records.record import Record, encode_batch

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150)
PRODUCERS = st.integers(1, 3)


@dataclass
class Batch:
    """The model of one batch; it has one record."""

    producer_id: int  #: 0 means no producer
    is_transactional: bool
    commit: bool | None = None  #: set for a marker only
    epoch: int = 0


class TransactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.history: list[Batch] = []
        self.open(clean=False)

    def open(self, *, clean: bool) -> None:
        self.log = open_log(
            Path(self.home.name) / "t-0",
            TopicPartition("t", 0),
            config=CONFIG,
            clock=self.clock,
            clean_shutdown=clean,
            open_files=OpenFiles(2),
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    def teardown(self) -> None:
        self.log.local.abandon()
        self.home.cleanup()

    def epoch_of(self, producer_id: int) -> int:
        return max((batch.epoch for batch in self.history if batch.producer_id == producer_id), default=0)

    def append(self, batch: Batch) -> None:
        sequence = sum(
            (other.producer_id, other.epoch, other.commit) == (batch.producer_id, batch.epoch, None)
            for other in self.history
        )
        records = encode_batch(
            [Record(0, self.clock.now_ms, None, b"x" * 40)],
            producer_id=batch.producer_id or -1,
            producer_epoch=batch.epoch if batch.producer_id else -1,
            base_sequence=sequence if batch.producer_id else -1,
            transactional=batch.is_transactional,
        )
        verification = None
        if batch.is_transactional:
            verification = self.log.producers.start_verification(
                batch.producer_id, batch.epoch, sequence, bumps_epochs=False
            )
        self.log.append_as_leader(memoryview(records), 0, verification=verification)
        self.history.append(batch)
        self.log.update_high_watermark(len(self.history))

    @rule(producer_id=PRODUCERS)
    def write(self, producer_id: int) -> None:
        self.append(Batch(producer_id, True, epoch=self.epoch_of(producer_id)))

    @rule()
    def write_without_transaction(self) -> None:
        self.append(Batch(0, False))

    @rule(producer_id=PRODUCERS, commit=st.booleans(), bumps_epoch=st.booleans())
    def end(self, producer_id: int, commit: bool, bumps_epoch: bool) -> None:
        epoch = self.epoch_of(producer_id) + bumps_epoch
        self.log.append_transaction_marker(
            EndTransactionMarker(producer_id, epoch, 0, commit, self.clock.now_ms), 0
        )
        self.history.append(Batch(producer_id, True, commit, epoch))
        self.log.update_high_watermark(len(self.history))

    @rule(producer_id=PRODUCERS, commit=st.booleans())
    def fenced(self, producer_id: int, commit: bool) -> None:
        """A producer with an older epoch can neither write nor end a transaction."""
        epoch = self.epoch_of(producer_id) - 1
        if epoch < 0:
            return
        late: list[Callable[[], object]] = [
            lambda: self.append(Batch(producer_id, True, epoch=epoch)),
            lambda: self.log.append_transaction_marker(
                EndTransactionMarker(producer_id, epoch, 0, commit, 1), 0
            ),
        ]
        for attempt in late:
            with pytest.raises(KafkaError) as raised:
                attempt()
            assert raised.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
        assert self.log.log_end_offset == len(self.history)

    @rule(back=st.integers(0, 8))
    def truncate(self, back: int) -> None:
        offset = max(len(self.history) - back, 0)
        self.log.truncate_to(offset)
        del self.history[offset:]

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            close_log(self.log)
        else:
            self.log.local.abandon()
        self.open(clean=clean)

    @rule(data=st.data(), max_bytes=st.sampled_from([1, 250, 100_000]))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = start = data.draw(st.integers(0, len(self.history)))
        stable_offset = self.log.last_stable_offset
        seen: list[int] = []
        while offset < stable_offset:
            log_slice = self.log.read(offset, max_bytes, stable_offset, min_one_batch=True)
            aborted = self.log.producers.aborted_transactions(offset, log_slice, self.log.log_end_offset)
            offset = consume(log_slice.data, aborted, seen)
        assert seen == [committed for committed in self.committed() if start <= committed < stable_offset]

    def results(self) -> dict[int, bool | None]:
        """Return for each batch in a transaction whether that was committed; None while it is open."""
        results: dict[int, bool | None] = {}
        open_batches: dict[int, list[int]] = {}
        for offset, batch in enumerate(self.history):
            if not batch.is_transactional:
                continue
            if batch.commit is None:
                open_batches.setdefault(batch.producer_id, []).append(offset)
                results[offset] = None
                continue
            for open_offset in open_batches.pop(batch.producer_id, []):
                results[open_offset] = batch.commit
        return results

    def committed(self) -> list[int]:
        results = self.results()
        return [
            offset
            for offset, batch in enumerate(self.history)
            if batch.commit is None and results.get(offset, True)
        ]

    @invariant()
    def the_last_stable_offset_is_that_of_the_first_open_transaction(self) -> None:
        undecided = (offset for offset, result in self.results().items() if result is None)
        assert self.log.last_stable_offset == min(undecided, default=len(self.history))

    @invariant()
    def producers_know_where_their_transactions_began(self) -> None:
        results = self.results()
        for producer in self.log.producers.states.active:
            mine = [
                offset
                for offset, result in results.items()
                if result is None and self.history[offset].producer_id == producer.producer_id
            ]
            assert producer.current_txn_start_offset == min(mine, default=-1)


def consume(data: memoryview, aborted: list[AbortedTransaction], seen: list[int]) -> int:
    """Add the offsets that a consumer returns to `seen`; returns its next offset."""
    upcoming = sorted(aborted, key=lambda transaction: transaction.first_offset)
    aborted_producers: set[int] = set()
    next_offset = -1
    for position, header in iterate_headers(data):
        next_offset = header.next_offset
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            aborted_producers.add(upcoming.pop(0).producer_id)
        if header.is_control:
            marker = read_end_marker(data, position, header)
            if marker is not None and not marker.commit:
                aborted_producers.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted_producers):
            seen.append(header.base_offset)
    return next_offset


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(max_examples=60, stateful_step_count=40)
