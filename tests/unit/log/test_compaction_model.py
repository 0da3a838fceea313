"""Random keys, tombstones and transactions, compacted repeatedly and compared with a list of all records."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.closing import close_log
from barnabas.log.compaction.offset_map import OffsetMap, PlainOffsetMap, TableOffsetMap
from barnabas.log.log_config import LogConfig
from barnabas.log.open_log import open_log
from barnabas.log.segments.open_files import OpenFiles
from barnabas.wire.records import key_table
from barnabas.wire.records.batch import iterate_headers
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.control import ControlType, EndTransactionMarker, control_type
from barnabas.wire.records.record import Record, decode_batch, encode_batch
from support.compaction import compact, records_of

RETENTION_MS = 1_000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=700,
    index_interval_bytes=150,
    delete_retention_ms=RETENTION_MS,
)
PRODUCERS = (1, 2)

pairs = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d" * 40]), st.none() | st.binary(max_size=30)),
    min_size=1,
    max_size=5,
)


def table(keys_count_max: int) -> OffsetMap:
    return TableOffsetMap(keys_count_max, 7, key_table)


@dataclass
class Written:
    record: Record
    producer_id: int | None  #: None outside a transaction
    committed: bool | None  #: None while the transaction is open


class CompactionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.written: list[Written] = []
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.open_transactions: set[int] = set()
        self.cleaned_to = 0
        self.open(clean=False)

    def open(self, *, clean: bool, cleaner_offset: int = 0) -> None:
        self.log = open_log(
            Path(self.home.name) / "t-0",
            TopicPartition("t", 0),
            config=CONFIG,
            clock=self.clock,
            clean_shutdown=clean,
            random=Random(0),
            open_files=OpenFiles(2),
        )
        self.log.cleaner_offset = cleaner_offset
        self.log.update_high_watermark(self.log.log_end_offset)

    def teardown(self) -> None:
        self.log.local.abandon()
        self.home.cleanup()

    def append(
        self, values: list[tuple[bytes, bytes | None]], codec: Compression, producer: int | None
    ) -> None:
        began_ms = self.clock.now_ms + 1
        # Advance the clock first: a tombstone's delete horizon counts from there.
        self.clock.advance(len(values))
        records = [Record(0, began_ms + number, *pair) for number, pair in enumerate(values)]
        options: dict[str, int] = {}
        verification = None
        if producer is not None:
            sequence = self.sequences[producer]
            options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            self.sequences[producer] += len(records)
            verification = self.log.producers.start_verification(producer, 0, sequence, bumps_epochs=False)
        batch = encode_batch(records, compression=codec, transactional=producer is not None, **options)  # type: ignore[arg-type]
        info = self.log.append_as_leader(memoryview(batch), 0, verification=verification)
        self.log.update_high_watermark(self.log.log_end_offset)
        for offset, record in enumerate(records, info.first_offset):
            committed = True if producer is None else None
            self.written.append(Written(record._replace(offset=offset), producer, committed))

    @rule(values=pairs, codec=st.sampled_from([Compression.NONE, Compression.ZSTD]))
    def put(self, values: list[tuple[bytes, bytes | None]], codec: Compression) -> None:
        self.append(values, codec, None)

    @rule(values=pairs, producer=st.sampled_from(PRODUCERS))
    def put_in_transaction(self, values: list[tuple[bytes, bytes | None]], producer: int) -> None:
        self.open_transactions.add(producer)
        self.append(values, Compression.NONE, producer)

    @rule(producer=st.sampled_from(PRODUCERS), commit=st.booleans())
    def end(self, producer: int, commit: bool) -> None:
        if producer in self.open_transactions:
            self.open_transactions.discard(producer)
            self.log.append_transaction_marker(
                EndTransactionMarker(producer, 0, 0, commit, self.clock.now_ms), 0
            )
            self.log.update_high_watermark(self.log.log_end_offset)
            for written in self.written:
                if written.producer_id == producer and written.committed is None:
                    written.committed = commit

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(
        keys_count_max=st.integers(1, 6),
        wait_ms=st.sampled_from([0, 1, RETENTION_MS]),
        from_start=st.booleans(),
        make_map=st.sampled_from([PlainOffsetMap, table]),
    )
    def clean(
        self, keys_count_max: int, wait_ms: int, from_start: bool, make_map: Callable[[int], OffsetMap]
    ) -> None:
        self.clock.advance(wait_ms)
        if from_start:
            self.log.cleaner_offset = 0
        options = {"keys_count_max": keys_count_max, "step_bytes": 200, "make_map": make_map}
        compact(self.log, self.clock.now_ms, **options)
        self.cleaned_to = max(self.cleaned_to, self.log.cleaner_offset)
        keys = [record.key for record in records_of(self.log) if record.offset < self.log.cleaner_offset]
        assert len(keys) == len(set(keys)), "one record per key is left below the cleaner offset"

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        cleaner_offset, before = self.log.cleaner_offset, self.log.log_end_offset
        if clean:
            close_log(self.log)
        else:
            self.log.local.abandon()
        self.open(clean=clean, cleaner_offset=cleaner_offset)
        assert self.log.log_end_offset == before

    @invariant()
    def remaining_records_are_unchanged_and_in_order(self) -> None:
        by_offset = {written.record.offset: written.record for written in self.written}
        remaining = records_of(self.log)
        assert [by_offset[record.offset] for record in remaining] == remaining
        assert [record.offset for record in remaining] == sorted({record.offset for record in remaining})

    @invariant()
    def readers_find_the_last_committed_value_of_each_key(self) -> None:
        stable = self.log.last_stable_offset
        expected: dict[bytes | None, Record] = {}
        for written in self.written:
            if written.committed and written.record.offset < stable:
                expected[written.record.key] = written.record
        found = {record.key: record for record in self.read_committed()}
        for key, record in expected.items():
            if record.value is not None or self.clock.now_ms < record.timestamp_ms + RETENTION_MS:
                assert found.get(key) == record
            else:
                assert found.get(key) in (record, None), "a deleted key does not come back"
        assert found.keys() <= expected.keys()

    @invariant()
    def readers_of_committed_records_see_no_others(self) -> None:
        committed = {written.record.offset for written in self.written if written.committed}
        assert {record.offset for record in self.read_committed()} <= committed

    @invariant()
    def aborted_records_are_removed_below_the_cleaner_offset(self) -> None:
        aborted = {written.record.offset for written in self.written if written.committed is False}
        left = {record.offset for record in records_of(self.log) if record.offset < self.cleaned_to}
        assert not aborted & left

    @invariant()
    def producer_sequences_are_kept(self) -> None:
        sequences = {
            producer.producer_id: producer.last_sequence for producer in self.log.producers.states.active
        }
        assert sequences == {producer: count - 1 for producer, count in self.sequences.items() if count}

    def read_committed(self) -> list[Record]:
        """Return the records that a consumer gets from batches and the aborted transactions of each fetch."""
        committed: list[Record] = []
        position, bound = self.log.log_start_offset, self.log.last_stable_offset
        while position < bound:
            log_slice = self.log.read(position, 300, bound, min_one_batch=True)
            upcoming = sorted(
                self.log.producers.aborted_transactions(position, log_slice, self.log.log_end_offset),
                key=lambda transaction: transaction.first_offset,
                reverse=True,
            )
            aborted: set[int] = set()
            data, before = bytes(log_slice.data), position
            for start, header in iterate_headers(data):
                while upcoming and upcoming[-1].first_offset <= header.last_offset:
                    aborted.add(upcoming.pop().producer_id)
                records = decode_batch(data, start, header)
                if header.is_control:
                    if records and control_type(records[0].key) is ControlType.ABORT:
                        aborted.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in aborted):
                    committed += [record for record in records if before <= record.offset < bound]
                position = header.next_offset
            if position == before:
                break
        return committed


TestCompaction = CompactionMachine.TestCase
TestCompaction.settings = settings(max_examples=60, stateful_step_count=40)
