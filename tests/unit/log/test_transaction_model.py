"""Random histories of transactions, read as a consumer of committed records reads, against a list."""

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
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
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
    """What the model knows of the batch at an offset; one record each."""

    producer_id: int  #: 0 for none
    is_transactional: bool
    commit: bool | None = None  #: of a marker
    epoch: int = 0


class TransactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.history: list[Batch] = []
        self.open(clean=False)

    def open(self, *, clean: bool) -> None:
        self.log = PartitionLog.open(
            Path(self.home.name) / "t-0",
            TopicPartition("t", 0),
            config=CONFIG,
            clock=self.clock,
            clean_shutdown=clean,
            open_files=OpenFiles(2),
        )
        self.log.update_high_watermark(self.log.log_end_offset)

    def teardown(self) -> None:
        self.log.abandon()
        self.home.cleanup()

    def epoch_of(self, producer_id: int) -> int:
        return max((each.epoch for each in self.history if each.producer_id == producer_id), default=0)

    def append(self, batch: Batch) -> None:
        sequence = sum(
            (each.producer_id, each.epoch, each.commit) == (batch.producer_id, batch.epoch, None)
            for each in self.history
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
            verification = self.log.start_verification(
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
        self.log.append_end_marker(EndTransactionMarker(producer_id, epoch, 0, commit, self.clock.now_ms), 0)
        self.history.append(Batch(producer_id, True, commit, epoch))
        self.log.update_high_watermark(len(self.history))

    @rule(producer_id=PRODUCERS, commit=st.booleans())
    def fenced(self, producer_id: int, commit: bool) -> None:
        """A producer of an earlier epoch neither writes nor ends anything."""
        epoch = self.epoch_of(producer_id) - 1
        if epoch < 0:
            return
        late: list[Callable[[], object]] = [
            lambda: self.append(Batch(producer_id, True, epoch=epoch)),
            lambda: self.log.append_end_marker(EndTransactionMarker(producer_id, epoch, 0, commit, 1), 0),
        ]
        for act in late:
            with pytest.raises(KafkaError) as refused:
                act()
            assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
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
            self.log.close()
        else:
            self.log.abandon()
        self.open(clean=clean)

    @rule(data=st.data(), max_bytes=st.sampled_from([1, 250, 100_000]))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        offset = start = data.draw(st.integers(0, len(self.history)))
        stable_offset = self.log.last_stable_offset
        seen: list[int] = []
        while offset < stable_offset:
            found = self.log.read(offset, max_bytes, stable_offset, min_one_batch=True)
            aborted = self.log.aborted_transactions(offset, found)
            offset = consume(found.data, aborted, seen)
        assert seen == [each for each in self.committed() if start <= each < stable_offset]

    def outcomes(self) -> dict[int, bool | None]:
        """Of each batch in a transaction, whether that was committed; None while it is open."""
        outcomes: dict[int, bool | None] = {}
        open_batches: dict[int, list[int]] = {}
        for offset, batch in enumerate(self.history):
            if not batch.is_transactional:
                continue
            if batch.commit is None:
                open_batches.setdefault(batch.producer_id, []).append(offset)
                outcomes[offset] = None
                continue
            for each in open_batches.pop(batch.producer_id, []):
                outcomes[each] = batch.commit
        return outcomes

    def committed(self) -> list[int]:
        outcomes = self.outcomes()
        return [
            offset
            for offset, batch in enumerate(self.history)
            if batch.commit is None and outcomes.get(offset, True)
        ]

    @invariant()
    def the_last_stable_offset_is_that_of_the_first_open_transaction(self) -> None:
        undecided = (offset for offset, outcome in self.outcomes().items() if outcome is None)
        assert self.log.last_stable_offset == min(undecided, default=len(self.history))

    @invariant()
    def producers_know_where_their_transactions_began(self) -> None:
        outcomes = self.outcomes()
        for producer in self.log.active_producers:
            mine = [
                offset
                for offset, outcome in outcomes.items()
                if outcome is None and self.history[offset].producer_id == producer.producer_id
            ]
            assert producer.current_txn_start_offset == min(mine, default=-1)


def consume(data: memoryview, aborted: list[AbortedTransaction], seen: list[int]) -> int:
    """Add the offsets of what a consumer would hand out to `seen`; gives back where it reads next."""
    waiting = sorted(aborted, key=lambda each: each.first_offset)
    leaving_out: set[int] = set()
    next_offset = -1
    for position, header in iterate_headers(data):
        next_offset = header.next_offset
        while waiting and waiting[0].first_offset <= header.last_offset:
            leaving_out.add(waiting.pop(0).producer_id)
        if header.is_control:
            marker = read_end_marker(data, position, header)
            if marker is not None and not marker.commit:
                leaving_out.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in leaving_out):
            seen.append(header.base_offset)
    return next_offset


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(max_examples=60, stateful_step_count=40)
