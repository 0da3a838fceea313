"""What the tasks of `compact` do with the files of one partition. No Spark.

Which records are obsolete is told by the tables of Spark; all else is the broker's own code: what may be compacted
(`log.cleanable`), how segments are joined, and what is left of a batch (`log.cleaning`).
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
    TransactionsSoFar,
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
    """A segment that is compacted."""

    base_offset: int
    end_offset: int
    size_bytes: int
    index_bytes: int


@dataclass(frozen=True)
class PartitionPlan:
    """What is compacted of a partition."""

    place: TopicPartition
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
        return sum(each.size_bytes for each in self.sources)

    @cached_property
    def groups(self) -> list[list[SourceFile]]:
        """Sources that become one segment each."""
        return group_segments(self.sources, self.config)

    def path(self, source: SourceFile) -> Path:
        """The file of a source."""
        return offset_file(self.directory, source.base_offset, LOG_SUFFIX)


class LogOffsets(NamedTuple):
    """What brokers tell of a log."""

    log_start_offset: int
    last_stable_offset: int


def plan_partition(
    place: TopicPartition,
    directory: Path,
    topic_id: bytes,
    config: LogConfig,
    offsets: LogOffsets,
    segments: SegmentFiles,
    now_ms: int,
) -> PartitionPlan | None:
    """What the broker's cleaner would compact now; None when nothing is dirty.

    :raises FileNotFoundError: When segments were replaced just now.
    """
    *bases, active_offset = segments.base_offsets()
    rolled = [_segment(directory, base_offset) for base_offset in bases]
    bounds = LogBounds(
        log_start_offset=offsets.log_start_offset,
        log_end_offset=max(active_offset, offsets.last_stable_offset),
        last_stable_offset=offsets.last_stable_offset,
        active_offset=active_offset,
        cleaner_offset=_cleaner_offset(directory, place),
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
        each for index in transactions for each in index.entries if each.first_offset < end_offset
    )
    return PartitionPlan(
        place, directory, topic_id, config, sources, cleanable.first_dirty_offset, end_offset, aborted, now_ms
    )


def _segment(directory: Path, base_offset: int) -> Segment:
    """To be looked at alone: its files are not opened for writing."""
    size_bytes = offset_file(directory, base_offset, LOG_SUFFIX).stat().st_size
    return Segment(directory, base_offset, OpenFiles(1), size_bytes=size_bytes, created_ms=0)


def _cleaner_offset(directory: Path, place: TopicPartition) -> int:
    try:
        return read_offsets(directory.parent / CLEANER_OFFSET_FILE).get(place, 0)
    except MalformedFile:
        return 0


def log_config(values: Mapping[str, str | None]) -> LogConfig:
    """What compaction must know of a topic, from its described configs."""

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


# Looking over a partition


class Survey(NamedTuple):
    """What is known of a partition by its headers."""

    #: Of each source.
    digests: tuple[str, ...]
    #: Where the pieces of each source begin, and its size.
    cuts: tuple[tuple[int, ...], ...]
    #: Where each group begins.
    transactions: tuple[TransactionsSoFar, ...]
    last_records: Mapping[int, LastRecord]


def survey(plan: PartitionPlan, segments: SegmentFiles, piece_bytes: int) -> Survey:
    """Read all headers once.

    :raises FileNotFoundError: When segments were replaced meanwhile.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    transactions = CleanedTransactionMetadata(plan.aborted)
    digests: list[str] = []
    cuts: list[tuple[int, ...]] = []
    states: list[TransactionsSoFar] = []
    for group in plan.groups:
        transactions.take_retained()
        states.append(transactions.so_far)
        for source in group:
            digest, cut = _survey_source(plan.path(source), source, transactions, piece_bytes)
            digests.append(digest)
            cuts.append(cut)
    producers = producers_of(plan.place, plan.directory, segments)
    return Survey(tuple(digests), tuple(cuts), tuple(states), last_records(producers.entries))


def _survey_source(
    path: Path, source: SourceFile, transactions: CleanedTransactionMetadata, piece_bytes: int
) -> tuple[str, tuple[int, ...]]:
    digest = HeaderDigest()
    cuts, position = [0], 0
    with path.open("rb", buffering=0) as file:
        for headers in headers_of(file.fileno(), source.size_bytes):
            digest.update(headers)
            for header in headers:
                if position - cuts[-1] >= piece_bytes:
                    cuts.append(position)
                if header.is_control:
                    columns = read_columns(os.pread(file.fileno(), header.size_bytes, position))
                    transactions.can_discard(header, control_type_of(columns, 0))
                else:
                    transactions.is_aborted(header)
                position += header.size_bytes
    return digest.text, (*cuts, source.size_bytes)


def producers_of(place: TopicPartition, directory: Path, segments: SegmentFiles) -> ProducerStateManager:
    """The producers at the end of the log: the newest snapshot that can be read, and the batches behind it.

    One that the broker has forgotten since may be among them: what is kept for it is kept once too often.
    """
    states, start = ProducerStateManager(place), 0
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
    """Batches of one source."""

    #: Of the partition, among those of the job.
    part: int
    #: Of the segment that is written, likewise.
    group: int
    path: Path
    start: int
    end: int


def pieces_of(plan: PartitionPlan, surveyed: Survey, part: int, first_group: int) -> Iterator[SegmentSlice]:
    """All sources of a partition."""
    cuts = iter(surveyed.cuts)
    for group, sources in enumerate(plan.groups, first_group):
        for source in sources:
            for start, end in pairwise(next(cuts)):
                yield SegmentSlice(part, group, plan.path(source), start, end)


class Aborted:
    """Tells batches of aborted transactions from others."""

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._ends: dict[int, tuple[list[int], list[int]]] = {}
        for each in sorted(transactions, key=lambda each: each.last_offset):
            firsts, lasts = self._ends.setdefault(each.producer_id, ([], []))
            firsts.append(each.first_offset)
            lasts.append(each.last_offset)

    def has(self, producer_id: int, offset: int) -> bool:
        """Whether the producer's transactional batch at `offset` was aborted."""
        firsts, lasts = self._ends.get(producer_id, ([], []))
        index = int(np.searchsorted(lasts, offset))
        return index < len(lasts) and firsts[index] <= offset


def read_keys(plan: PartitionPlan, piece: SegmentSlice) -> Iterator[pa.RecordBatch]:
    """A row of `KEY_ROWS` for each record that has a key and was not aborted.

    :raises FileNotFoundError: When the segment was replaced meanwhile.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    aborted = Aborted(plan.aborted)
    for chunk in checked_chunks(piece.path, piece.end, _STEP_BYTES, piece.start):
        columns = read_columns(chunk)
        wanted = np.asarray(columns.key_sizes) >= 0
        for batch, header in enumerate(columns.headers):
            is_aborted = header.is_transactional and aborted.has(header.producer_id, header.base_offset)
            if header.is_control or is_aborted:
                wanted[columns.first_rows[batch] : columns.first_rows[batch + 1]] = False
        rows = np.flatnonzero(wanted)
        if len(rows):
            offsets = np.asarray(columns.offsets)[rows]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(np.full(len(rows), piece.part, np.int32)),
                    pa.array(np.full(len(rows), piece.group, np.int32)),
                    keys_of(columns, rows),
                    pa.array(offsets),
                    pa.array(offsets >= plan.first_dirty_offset),
                ],
                schema=KEY_ROWS,
            )


def keys_of(columns: RecordColumns, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Array:
    """What the keys of these rows are known by, as the broker's cleaner knows them: two keys are never the same."""
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
    """Records that are known to be obsolete by their offsets; those without a key are, too."""

    entry_bytes = 8

    def __init__(self, obsolete: "np.ndarray[tuple[int], np.dtype[np.int64]]", end_offset: int) -> None:
        super().__init__(1)
        self._obsolete = np.sort(obsolete)
        self.latest_offset = end_offset - 1

    def __len__(self) -> int:
        return len(self._obsolete)

    def put_rows(self, columns: RecordColumns, rows: Sequence[int], first_offset: int) -> bool:
        """Nothing is added: everything is known."""
        return True

    def obsolete_rows(self, columns: RecordColumns) -> bytes:
        """See `OffsetMap`."""
        offsets = np.asarray(columns.offsets)
        keyless = np.asarray(columns.key_sizes) < 0
        places = np.searchsorted(self._obsolete, offsets)
        found = np.zeros(len(offsets), np.bool_)
        inside = places < len(self._obsolete)
        found[inside] = self._obsolete[places[inside]] == offsets[inside]
        return (found | keyless).astype(np.uint8).tobytes()


class Cleaned(NamedTuple):
    """A segment that was written, and how many records its sources had and it has."""

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
    """Write the group of that index.

    Whoever else writes the same group at the same time writes another file.

    :raises FileNotFoundError: When segments were replaced meanwhile, or `target` is gone.
    :raises KafkaError: CORRUPT_MESSAGE.
    """
    group = plan.groups[index]
    scratch = target / f"{group[0].base_offset:020d}-{uuid4().hex}.tmp"
    scratch.mkdir()
    cleaning = Cleaner(
        _pass_of(plan, surveyed, scratch),
        KnownRows(obsolete, plan.end_offset),
        _STEP_BYTES,
        CleanedTransactionMetadata(plan.aborted, surveyed.transactions[index]),
    )
    steps = cleaning.clean([_source_of(plan, each) for each in group])
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
    first = sum(len(each) for each in plan.groups[:index])
    replaced = tuple(
        Replaced(each.base_offset, each.size_bytes, digest)
        for each, digest in zip(group, surveyed.digests[first : first + len(group)], strict=True)
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
    return Cleaned(part, cleaning.read_records_count, cleaning.kept_records_count)


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
