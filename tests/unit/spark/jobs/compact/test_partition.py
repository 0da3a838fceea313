"""The tasks of `compact` write the same files as the broker's cleaner."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.compaction.cleaning_pass import last_records
from barnabas.log.files import offset_file
from barnabas.log.imports.validation import ImportableSegment, SegmentImport
from barnabas.log.log_config import LogConfig
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.startup.checkpoints import CLEANER_OFFSET_FILE, write_offsets
from barnabas.log.startup.open_log import open_log
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.control import EndTransactionMarker
from barnabas.wire.records.record import Record, encode_batch
from pyspark_barnabas.jobs.compact.partition import (
    Cleaned,
    LogOffsets,
    PartitionPlan,
    clean_group,
    log_config,
    plan_partition,
    read_keys,
    slices_of,
    survey,
)
from pyspark_barnabas.source.segment_files import SegmentFiles
from support.compacting import obsolete_of
from support.compaction import compact, files_of, offsets_of

TP = TopicPartition("t", 0)
RETENTION_MS = 1_000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=700,
    index_interval_bytes=150,
    delete_retention_ms=RETENTION_MS,
)
LONG = b"l" * 40


class Home:
    """A log with its clock and producers."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, ManualClock()
        self.directory = path / str(TP)
        self.sequences: dict[int, int] = {}
        self.open_transactions: set[int] = set()
        self.log = open_log(
            self.directory, TP, config=CONFIG, clock=self.clock, random=Random(0), open_files=OpenFiles(2)
        )

    def put(self, pairs: list[tuple[bytes, bytes | None]], codec: Compression = Compression.NONE) -> None:
        self.log.append_as_leader(memoryview(self._batch(pairs, compression=codec)), 0)
        self.log.update_high_watermark(self.log.log_end_offset)

    def put_as(self, producer: int, pairs: list[tuple[bytes, bytes | None]], *, transactional: bool) -> None:
        if not transactional and producer in self.open_transactions:
            return
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + len(pairs)
        verification = None
        if transactional:
            self.open_transactions.add(producer)
            verification = self.log.producers.start_verification(producer, 0, sequence, bumps_epochs=False)
        batch = self._batch(
            pairs, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=transactional
        )
        self.log.append_as_leader(memoryview(batch), 0, verification=verification)
        self.log.update_high_watermark(self.log.log_end_offset)

    def _batch(self, pairs: list[tuple[bytes, bytes | None]], **options: object) -> bytearray:
        self.clock.advance(1)
        records = [Record(0, self.clock.now_ms, *pair) for pair in pairs]
        return encode_batch(records, **options)  # type: ignore[arg-type]

    def end(self, producer: int, *, commit: bool) -> None:
        if producer in self.open_transactions:
            self.open_transactions.discard(producer)
            self.log.append_transaction_marker(
                EndTransactionMarker(producer, 0, 0, commit, self.clock.now_ms), 0
            )
            self.log.update_high_watermark(self.log.log_end_offset)

    def plan(self) -> PartitionPlan | None:
        write_offsets(self.path / CLEANER_OFFSET_FILE, {TP: self.log.cleaner_offset})
        offsets = LogOffsets(self.log.log_start_offset, self.log.last_stable_offset)
        return plan_partition(
            TP, self.directory, bytes(16), CONFIG, offsets, self.segments, self.clock.now_ms
        )

    @property
    def segments(self) -> SegmentFiles:
        return SegmentFiles(self.directory, lambda seconds: None)

    def clean_by_tasks(self, slice_bytes: int) -> list[tuple[Cleaned, Path]]:
        """Return the output of the tasks in a directory beside the log; tables are plain Python here."""
        plan = self.plan()
        if plan is None:
            return []
        target = Path(tempfile.mkdtemp(dir=self.path))
        surveyed = survey(plan, self.segments, slice_bytes)
        obsolete = obsolete_of(plan, surveyed)
        cleaned = [
            clean_group(plan, surveyed, index, obsolete[index], target) for index in range(len(plan.groups))
        ]
        assert sorted(path.name for path in target.iterdir()) == sorted(each.part.file for each in cleaned)
        return [(each, target) for each in cleaned]

    def imported(self, cleaned: Cleaned, target: Path, end_offset: int) -> dict[str, bytes]:
        """Return the files that the broker makes of a part."""
        part, log = cleaned.part, self.log
        old = [offset_file(self.directory, each.base_offset, ".log") for each in part.replaced]
        aborted = [each for segment in log.segments for each in segment.transaction_index.entries]
        expected = ImportableSegment(
            part, target, target, old, end_offset, CONFIG, last_records(log.producers.states.entries), aborted,
            self.clock.now_ms, 500,
        )  # fmt: skip
        steps = SegmentImport(expected).steps()
        while True:
            try:
                next(steps)
            except StopIteration:
                return files_of(target, part.base_offset, ".cleaned")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.log.local.abandon()


def check_equal(home: Home, slice_bytes: int) -> None:
    """Compact the same log with tasks and with the broker."""
    cleaned = home.clean_by_tasks(slice_bytes)
    end_offset = cleaned[-1][0].part.end_offset if cleaned else 0
    imported = {each.part.base_offset: home.imported(each, target, end_offset) for each, target in cleaned}
    cleaning = compact(home.log, home.clock.now_ms)
    if cleaned:
        assert cleaning.end_offset == end_offset
        assert sum(each.records_before for each, _ in cleaned) == cleaning.read_records_count
        assert sum(each.records_after for each, _ in cleaned) == cleaning.kept_records_count
    for each, target in cleaned:
        own = files_of(home.directory, each.part.base_offset)
        assert (target / each.part.file).read_bytes() == own[".log"]
        assert imported[each.part.base_offset] == own
    if cleaned:
        bases = [each.part.base_offset for each, _ in cleaned]
        assert bases == [each.base_offset for each in home.log.segments if each.base_offset < end_offset]


pairs = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"", LONG]), st.none() | st.binary(max_size=30)),
    min_size=1,
    max_size=5,
)
producers = st.sampled_from((1, 2))
codecs = st.sampled_from([Compression.NONE, Compression.ZSTD])
steps = st.one_of(
    st.tuples(st.just("put"), pairs, codecs),
    st.tuples(st.just("put_as"), producers, pairs, st.booleans()),
    st.tuples(st.just("end"), producers, st.booleans()),
    st.tuples(st.just("transact"), producers, pairs, st.booleans(), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("wait"), st.sampled_from([1, RETENTION_MS])),
    st.tuples(st.just("clean"), st.sampled_from([150, 10_000])),
    st.tuples(st.just("start_at"), st.integers(0, 100)),
)


@settings(max_examples=80, deadline=None)
@given(history=st.lists(steps, max_size=40))
def test_any_history_is_compacted_byte_for_byte_as_by_the_broker(history: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as path:
        home = Home(Path(path))
        for what, *arguments in (*history, ("roll",), ("clean", 300)):
            match what, arguments:
                case "put", [values, codec]:
                    home.put(values, codec)  # type: ignore[arg-type]
                case "put_as", [producer, values, transactional]:
                    home.put_as(producer, values, transactional=bool(transactional))  # type: ignore[arg-type]
                case "end", [producer, commit]:
                    home.end(producer, commit=bool(commit))  # type: ignore[arg-type]
                case "transact", [producer, values, is_long, commit]:
                    home.put_as(producer, values, transactional=True)  # type: ignore[arg-type]
                    for _ in range(5 * bool(is_long)):
                        home.put([(b"between", b"x" * 200)])
                    home.end(producer, commit=bool(commit))  # type: ignore[arg-type]
                case "roll", []:
                    home.log.roll()
                case "wait", [wait_ms]:
                    home.clock.advance(wait_ms)  # type: ignore[arg-type]
                case "start_at", [offset]:
                    home.log.increment_log_start_offset(min(offset, home.log.high_watermark))  # type: ignore[type-var]
                case "clean", [slice_bytes]:
                    check_equal(home, slice_bytes)  # type: ignore[arg-type]
        home.log.local.abandon()


def test_a_log_without_dirty_segments_is_left_alone(home: Home) -> None:
    home.put([(b"a", b"1")])
    assert home.plan() is None
    home.log.roll()
    plan = home.plan()
    assert plan is not None
    assert (plan.first_dirty_offset, plan.end_offset, plan.size_bytes) == (
        0,
        1,
        home.log.segments[0].size_bytes,
    )
    compact(home.log, home.clock.now_ms)
    assert home.plan() is None


def test_an_open_transaction_limits_compaction(home: Home) -> None:
    home.put([(b"a", b"1")])
    home.log.roll()
    home.put_as(1, [(b"a", b"2")], transactional=True)
    home.log.roll()
    home.put([(b"a", b"3")])
    home.log.roll()
    plan = home.plan()
    assert plan is not None
    assert plan.end_offset == 1
    home.end(1, commit=True)
    home.log.roll()
    check_equal(home, 10_000)
    assert offsets_of(home.log) == [2]


def test_an_aborted_record_does_not_make_earlier_ones_obsolete(home: Home) -> None:
    home.put([(b"a", b"1")])
    home.put_as(1, [(b"a", b"2")], transactional=True)
    home.end(1, commit=False)
    home.log.roll()
    check_equal(home, 10_000)
    assert offsets_of(home.log) == [0]


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_may_end_in_a_segment_of_another_task(home: Home, commit: bool) -> None:
    home.put_as(1, [(b"a", b"1")], transactional=True)
    for _ in range(5):
        home.put([(b"b", b"x" * 300)])
    home.end(1, commit=commit)
    home.log.roll()
    plan = home.plan()
    assert plan is not None
    assert len(plan.groups) > 1
    check_equal(home, 10_000)
    assert offsets_of(home.log) == ([0, 5] if commit else [5])


def test_many_long_keys_are_distinct(home: Home) -> None:
    keys = [LONG + b"%d" % number for number in range(60)]
    for key in keys + keys[:20]:
        home.put([(key, b"1"), (b"short", b"1")])
    home.log.roll()
    check_equal(home, 10_000)
    assert len(offsets_of(home.log)) == 61


def test_a_damaged_or_missing_segment_ends_the_job(home: Home, tmp_path: Path) -> None:
    home.put([(b"a", b"1")])
    home.log.roll()
    plan = home.plan()
    assert plan is not None
    surveyed = survey(plan, home.segments, 1_000)
    path = plan.path(plan.sources[0])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    [piece] = slices_of(plan, surveyed, 0, 0)
    with pytest.raises(KafkaError, match="does not match its CRC"):
        list(read_keys(plan, piece))
    path.unlink()
    with pytest.raises(FileNotFoundError):
        clean_group(plan, surveyed, 0, np.array([], np.int64), tmp_path)


def test_configs_are_parsed_as_brokers_describe_them() -> None:
    described = {
        "cleanup.policy": "compact,delete",
        "delete.retention.ms": "5",
        "index.interval.bytes": "6",
        "min.compaction.lag.ms": "7",
        "segment.bytes": "8",
        "segment.index.bytes": "9",
    }
    found = log_config(described)
    assert found.cleanup_policy == {"compact", "delete"}
    assert (found.delete_retention_ms, found.index_interval_bytes, found.min_compaction_lag_ms) == (5, 6, 7)
    assert (found.segment_bytes, found.segment_index_bytes) == (8, 9)
