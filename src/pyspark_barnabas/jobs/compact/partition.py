"""Work of the `compact` tasks on the files of one partition. No Spark.

Spark's tables say which records are obsolete; all else is the broker's own code: what may be compacted
(`log.compaction.log_to_clean`), how segments are joined, and what remains of a batch
(`log.compaction.cleaning_pass`).
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa

from barnabas.base.ids import TopicPartition
from barnabas.log.compaction.cleaned_transaction_metadata import (
    CleanedTransactionMetadata,
    CleanedTransactionState,
    control_type_of,
)
from barnabas.log.compaction.cleaner import index_bytes_of
from barnabas.log.compaction.cleaning_pass import (
    Cleaner,
    CleaningPlan,
    LastRecord,
    Source,
    discard,
    last_records,
)
from barnabas.log.compaction.log_to_clean import LogBounds, decide_cleanable, group_segments
from barnabas.log.compaction.offset_map import SHORT_KEY_BYTES, OffsetMap, short_key
from barnabas.log.files import LOG_SUFFIX, SNAPSHOT_SUFFIX, offset_file
from barnabas.log.imports.manifest import HeaderDigest, ImportedSegment, Replaced, digest_of, headers_of
from barnabas.log.log_config import FOREVER, LogConfig
from barnabas.log.producers.producer_recovery import end_transaction
from barnabas.log.producers.producer_snapshot import read_snapshot, snapshot_offsets
from barnabas.log.producers.producer_state_manager import ProducerStateManager
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segment_chunks import checked_chunks
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.log.startup.checkpoints import CLEANER_OFFSET_FILE, MalformedFile, read_offsets
from barnabas.wire.records.columns import RecordColumns, read_columns
from pyspark_barnabas.source.segment_files import SegmentFiles

_STEP_BYTES = 8 * 1024 * 1024

KEY_ROWS = pa.schema(
    [
        ("part", pa.int32()),
        ("grp", pa.int32()),
        ("key", pa.binary()),
        ("offset", pa.int64()),
        ("dirty", pa.bool_()),
    ]
)
KEY_ROWS_DDL = "part int, grp int, key binary, offset bigint, dirty boolean"


class SourceFile(NamedTuple):
    """A segment to be compacted; offsets are base_offset <= offset < end_offset."""

    base_offset: int
    end_offset: int
    size_bytes: int
    index_bytes: int


@dataclass(frozen=True)
class PartitionPlan:
    """The segments of a partition to be compacted, with all that tasks need to know."""

    tp: TopicPartition
    directory: Path
    topic_id: bytes
    config: LogConfig
    sources: tuple[SourceFile, ...]
    first_dirty_offset: int
    end_offset: int
    aborted: tuple[AbortedTransaction, ...]
    now_ms: int

    @property
    def size_bytes(self) -> int:
        return sum(source.size_bytes for source in self.sources)

    @cached_property
    def groups(self) -> list[list[SourceFile]]:
        """Sources grouped by the segment that they are merged into."""
        return group_segments(self.sources, self.config)

    def path(self, source: SourceFile) -> Path:
        return offset_file(self.directory, source.base_offset, LOG_SUFFIX)


class LogOffsets(NamedTuple):
    """Offsets of a log as brokers report them."""

    log_start_offset: int
    last_stable_offset: int


def plan_partition(
    tp: TopicPartition,
    directory: Path,
    topic_id: bytes,
    config: LogConfig,
    offsets: LogOffsets,
    segments: SegmentFiles,
    now_ms: int,
) -> PartitionPlan | None:
    """Plan what the broker's cleaner would compact now; return None if nothing is dirty.

    :raises FileNotFoundError: Segments were replaced meanwhile.
    """
    *bases, active_offset = segments.base_offsets()
    rolled = [_segment(directory, base_offset) for base_offset in bases]
    bounds = LogBounds(
        log_start_offset=offsets.log_start_offset,
        log_end_offset=max(active_offset, offsets.last_stable_offset),
        last_stable_offset=offsets.last_stable_offset,
        active_offset=active_offset,
        cleaner_offset=_cleaner_offset(directory, tp),
    )
    cleanable = decide_cleanable(rolled, bounds, config, now_ms)
    if not cleanable.dirty_bytes:
        return None
    end_offset = cleanable.first_uncleanable_offset
    sources = tuple(
        SourceFile(segment.base_offset, end, segment.size_bytes, index_bytes_of(segment))
        for segment, (_, end) in zip(rolled, pairwise([*bases, active_offset]), strict=True)
        if segment.base_offset < end_offset
    )
    transactions = (_segment(directory, base).transaction_index for base in (*bases, active_offset))
    aborted = tuple(
        entry for index in transactions for entry in index.entries if entry.first_offset < end_offset
    )
    return PartitionPlan(
        tp, directory, topic_id, config, sources, cleanable.first_dirty_offset, end_offset, aborted, now_ms
    )


def _segment(directory: Path, base_offset: int) -> Segment:
    """Open a segment for reading only."""
    size_bytes = offset_file(directory, base_offset, LOG_SUFFIX).stat().st_size
    return Segment(directory, base_offset, OpenFiles(1), size_bytes=size_bytes, created_ms=0)


def _cleaner_offset(directory: Path, tp: TopicPartition) -> int:
    try:
        return read_offsets(directory.parent / CLEANER_OFFSET_FILE).get(tp, 0)
    except MalformedFile:
        return 0


def log_config(values: Mapping[str, str | None]) -> LogConfig:
    """Build the log config that compaction needs from a topic's described configs."""

    def integer(name: str) -> int:
        return int(values[name] or 0)

    return LogConfig(
        segment_bytes=integer("segment.bytes"),
        segment_index_bytes=integer("segment.index.bytes"),
        index_interval_bytes=integer("index.interval.bytes"),
        cleanup_policy=frozenset((values["cleanup.policy"] or "").split(",")),
        delete_retention_ms=integer("delete.retention.ms"),
        min_compaction_lag_ms=integer("min.compaction.lag.ms"),
        max_compaction_lag_ms=FOREVER,
    )


# Survey of a partition


class Survey(NamedTuple):
    """Facts about a partition from its batch headers."""

    #: Header digest of each source.
    digests: tuple[str, ...]
    #: File positions at which the slices of each source begin, followed by its size.
    cuts: tuple[tuple[int, ...], ...]
    #: State of the transactions at the start of each group.
    transactions: tuple[CleanedTransactionState, ...]
    last_records: Mapping[int, LastRecord]


def survey(plan: PartitionPlan, segments: SegmentFiles, slice_bytes: int) -> Survey:
    """Read all headers once.

    :raises FileNotFoundError: Segments were replaced meanwhile.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    transactions = CleanedTransactionMetadata(plan.aborted)
    digests: list[str] = []
    cuts: list[tuple[int, ...]] = []
    states: list[CleanedTransactionState] = []
    for group in plan.groups:
        transactions.take_retained()
        states.append(transactions.state)
        for source in group:
            digest, cut = _survey_source(plan.path(source), source, transactions, slice_bytes)
            digests.append(digest)
            cuts.append(cut)
    producers = producers_of(plan.tp, plan.directory, segments)
    return Survey(tuple(digests), tuple(cuts), tuple(states), last_records(producers.entries))


def _survey_source(
    path: Path, source: SourceFile, transactions: CleanedTransactionMetadata, slice_bytes: int
) -> tuple[str, tuple[int, ...]]:
    digest = HeaderDigest()
    cuts, position = [0], 0
    with path.open("rb", buffering=0) as file:
        for headers in headers_of(file.fileno(), source.size_bytes):
            digest.update(headers)
            for header in headers:
                if position - cuts[-1] >= slice_bytes:
                    cuts.append(position)
                if header.is_control:
                    columns = read_columns(os.pread(file.fileno(), header.size_bytes, position))
                    transactions.can_discard(header, control_type_of(columns, 0))
                else:
                    transactions.is_aborted(header)
                position += header.size_bytes
    return digest.text, (*cuts, source.size_bytes)


def producers_of(tp: TopicPartition, directory: Path, segments: SegmentFiles) -> ProducerStateManager:
    """Return the producers at the end of the log, from the newest readable snapshot and the batches after it.

    It may include producers that the broker has expired since; their last records are then kept unnecessarily.
    """
    states, start = ProducerStateManager(tp), 0
    for offset in reversed(snapshot_offsets(directory)):
        try:
            states.replace(read_snapshot(offset_file(directory, offset, SNAPSHOT_SUFFIX)))
        except (MalformedFile, FileNotFoundError):
            continue
        start = offset
        break
    for chunk in segments.chunks(start, FOREVER):
        position = 0
        for header in chunk.headers:
            if header.has_producer_id and header.is_control:
                end_transaction(states, chunk.buffer[position:], header)
            elif header.has_producer_id:
                states.record(header)
            position += header.size_bytes
    return states


# Reading keys


class SegmentSlice(NamedTuple):
    """A range of batches of one source: file positions start <= position < end."""

    #: Index of the partition within the job.
    part: int
    #: Index of the segment to be written, within the job.
    group: int
    path: Path
    start: int
    end: int


def slices_of(plan: PartitionPlan, surveyed: Survey, part: int, first_group: int) -> Iterator[SegmentSlice]:
    """Split all sources of a partition into slices."""
    cuts = iter(surveyed.cuts)
    for group, sources in enumerate(plan.groups, first_group):
        for source in sources:
            for start, end in pairwise(next(cuts)):
                yield SegmentSlice(part, group, plan.path(source), start, end)


class Aborted:
    """Index of aborted transactions by producer."""

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._ends: dict[int, tuple[list[int], list[int]]] = {}
        for transaction in sorted(transactions, key=lambda transaction: transaction.last_offset):
            firsts, lasts = self._ends.setdefault(transaction.producer_id, ([], []))
            firsts.append(transaction.first_offset)
            lasts.append(transaction.last_offset)

    def has(self, producer_id: int, offset: int) -> bool:
        """Whether the producer's transactional batch at `offset` was aborted."""
        firsts, lasts = self._ends.get(producer_id, ([], []))
        index = int(np.searchsorted(lasts, offset))
        return index < len(lasts) and firsts[index] <= offset


def read_keys(plan: PartitionPlan, segment_slice: SegmentSlice) -> Iterator[pa.RecordBatch]:
    """Yield rows of `KEY_ROWS` for each record that has a key and was not aborted.

    :raises FileNotFoundError: The segment was replaced meanwhile.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    aborted = Aborted(plan.aborted)
    for chunk in checked_chunks(segment_slice.path, segment_slice.end, _STEP_BYTES, segment_slice.start):
        columns = read_columns(chunk)
        is_keyed = np.asarray(columns.key_sizes) >= 0
        for batch, header in enumerate(columns.headers):
            is_aborted = header.is_transactional and aborted.has(header.producer_id, header.base_offset)
            if header.is_control or is_aborted:
                is_keyed[columns.first_rows[batch] : columns.first_rows[batch + 1]] = False
        rows = np.flatnonzero(is_keyed)
        if len(rows):
            offsets = np.asarray(columns.offsets)[rows]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(np.full(len(rows), segment_slice.part, np.int32)),
                    pa.array(np.full(len(rows), segment_slice.group, np.int32)),
                    keys_of(columns, rows),
                    pa.array(offsets),
                    pa.array(offsets >= plan.first_dirty_offset),
                ],
                schema=KEY_ROWS,
            )


def keys_of(columns: RecordColumns, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Array:
    """Return the keys of these rows as the broker's cleaner compares them: distinct keys have distinct values."""
    sizes = np.asarray(columns.key_sizes)[rows]
    if sizes.max() >= SHORT_KEY_BYTES:
        return pa.array([short_key(columns.key(row) or b"") for row in rows.tolist()], pa.binary())
    ends = np.cumsum(sizes)
    shifts = np.asarray(columns.key_positions)[rows] - (ends - sizes)
    gathered = np.frombuffer(columns.data, np.uint8)[np.repeat(shifts, sizes) + np.arange(ends[-1])]
    offsets = np.zeros(len(rows) + 1, np.int32)
    offsets[1:] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(gathered))]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


# Cleaning


class KnownRows(OffsetMap):
    """Offset map for records whose obsolete offsets are known in advance; records without a key are obsolete, too."""

    entry_bytes = 8

    def __init__(self, obsolete: "np.ndarray[tuple[int], np.dtype[np.int64]]", end_offset: int) -> None:
        super().__init__(1)
        self._obsolete = np.sort(obsolete)
        self.latest_offset = end_offset - 1

    def __len__(self) -> int:
        return len(self._obsolete)

    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """Add nothing, because all obsolete offsets are known."""
        return True

    def obsolete_rows(self, columns: RecordColumns) -> bytes:
        """Return a byte for each row, as `OffsetMap`."""
        offsets = np.asarray(columns.offsets)
        keyless = np.asarray(columns.key_sizes) < 0
        indexes = np.searchsorted(self._obsolete, offsets)
        is_obsolete = np.zeros(len(offsets), np.bool_)
        inside = indexes < len(self._obsolete)
        is_obsolete[inside] = self._obsolete[indexes[inside]] == offsets[inside]
        return (is_obsolete | keyless).astype(np.uint8).tobytes()


class Cleaned(NamedTuple):
    """A segment that was written, with the record counts of its sources and its own."""

    part: ImportedSegment
    records_before: int
    records_after: int


def clean_group(
    plan: PartitionPlan,
    surveyed: Survey,
    index: int,
    obsolete: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    target: Path,
) -> Cleaned:
    """Write the group with this index.

    Concurrent attempts at the same group write different files.

    :raises FileNotFoundError: Segments were replaced meanwhile, or `target` no longer exists.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    group = plan.groups[index]
    scratch = target / f"{group[0].base_offset:020d}-{uuid4().hex}.tmp"
    scratch.mkdir()
    cleaner = Cleaner(
        _pass_of(plan, surveyed, scratch),
        KnownRows(obsolete, plan.end_offset),
        _STEP_BYTES,
        CleanedTransactionMetadata(plan.aborted, surveyed.transactions[index]),
    )
    steps = cleaner.clean_segments([_source_of(plan, source) for source in group])
    try:
        while True:
            next(steps)
    except StopIteration as end:
        cleaned: Segment = end.value
    file = scratch.with_suffix(".log")
    aborted, size_bytes = tuple(cleaned.transaction_index.entries), cleaned.size_bytes
    cleaned.path.rename(file)
    discard(cleaned)
    scratch.rmdir()
    first = sum(len(sources) for sources in plan.groups[:index])
    replaced = tuple(
        Replaced(source.base_offset, source.size_bytes, digest)
        for source, digest in zip(group, surveyed.digests[first : first + len(group)], strict=True)
    )
    part = ImportedSegment(
        file.name,
        group[0].base_offset,
        group[-1].end_offset,
        size_bytes,
        digest_of(file, size_bytes),
        replaced,
        aborted,
    )
    return Cleaned(part, cleaner.read_records_count, cleaner.kept_records_count)


def _source_of(plan: PartitionPlan, source: SourceFile) -> Source:
    return Source(_segment(plan.directory, source.base_offset), *source)


def _pass_of(plan: PartitionPlan, surveyed: Survey, directory: Path) -> CleaningPlan:
    return CleaningPlan(
        directory,
        (),
        plan.first_dirty_offset,
        plan.end_offset,
        plan.config,
        surveyed.last_records,
        plan.aborted,
        plan.now_ms,
    )
