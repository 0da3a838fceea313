"""One compaction pass over a log, in steps: index the latest record of each key, then write segments without the rest.

Nothing here changes the log: the new segments are separate files until the log replaces its own by them.
"""

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.base import disk
from barnabas.log.compaction.cleaned_transaction_metadata import CleanedTransactionMetadata, control_type_of
from barnabas.log.compaction.offset_map import OffsetMap
from barnabas.log.files import CLEANED_SUFFIX, SEGMENT_SUFFIXES, offset_file, unlink_files
from barnabas.log.log_config import LogConfig
from barnabas.log.producers.producer_state_manager import ProducerStateEntry
from barnabas.log.record_validation import INT64_MAX
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import BatchFacts, Segment
from barnabas.log.segments.segment_chunks import checked_chunks
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.records.batch import BatchHeader, iterate_headers
from barnabas.wire.records.columns import RecordColumns, read_columns
from barnabas.wire.records.filtering import empty_batch, filter_batch

#: Bytes that a step has read and written.
StepBytes = int


class Source(NamedTuple):
    """A segment to compact; it is not written to any more."""

    segment: Segment
    base_offset: int
    end_offset: int
    size_bytes: int
    index_bytes: int


class LastRecord(NamedTuple):
    """The last record of an active producer, which must be kept so that its sequence and epoch stay known."""

    #: None if the producer has written only transaction markers in its epoch.
    data_offset: int | None
    producer_epoch: int


def last_records(producers: Iterable[ProducerStateEntry]) -> dict[int, LastRecord]:
    """Return the last records of all producers, by producer id."""
    return {
        entry.producer_id: LastRecord(
            entry.batches[-1].last_offset if entry.batches else None, entry.producer_epoch
        )
        for entry in producers
    }


class CleaningPlan(NamedTuple):
    """What a pass has to do, from the state of the log when it began."""

    directory: Path
    #: All segments to compact, in order, from the first one of the log on.
    sources: Sequence[Source]
    first_dirty_offset: int
    #: Base offset of the segment after the last source.
    first_uncleanable_offset: int
    config: LogConfig
    #: Last records by producer id.
    last_records: Mapping[int, LastRecord]
    #: Aborted transactions in the sources.
    aborted: Sequence[AbortedTransaction]
    now_ms: int

    @property
    def offsets_count(self) -> int:
        """Upper bound of the number of records, and so of keys, in the dirty part."""
        return self.first_uncleanable_offset - self.first_dirty_offset

    @property
    def delete_horizon_ms(self) -> int:
        """When the tombstones that this pass meets for the first time may be removed."""
        return min(self.now_ms + self.config.delete_retention_ms, INT64_MAX)

    def needs(self, header: BatchHeader) -> bool:
        """Whether a batch must be kept even without records."""
        return must_retain(header, self.first_uncleanable_offset, self.last_records)


def must_retain(header: BatchHeader, end_offset: int, last_records: Mapping[int, LastRecord]) -> bool:
    """Whether a batch must be kept without records: for its producer's state, or to mark where the pass ended."""
    if header.next_offset == end_offset:
        return True
    last = last_records.get(header.producer_id) if header.has_producer_id else None
    if last is None:
        return False
    if last.data_offset is not None:
        return header.last_offset == last.data_offset
    return header.is_control and header.producer_epoch == last.producer_epoch


class Cleaner:
    """A pass in progress: run `build_offset_map`, then `clean_segments` for each group; both may run in a thread."""

    def __init__(
        self,
        plan: CleaningPlan,
        offset_map: OffsetMap,
        step_bytes: int,
        transactions: CleanedTransactionMetadata | None = None,
    ) -> None:
        """:param transactions: The state at the first segment to clean, if that is not the first one of the log."""
        self._plan = plan
        self._map = offset_map
        self._step_bytes = step_bytes
        self._transactions = (
            CleanedTransactionMetadata(plan.aborted) if transactions is None else transactions
        )
        self.read_bytes = 0
        self.written_bytes = 0
        self.read_records_count = 0
        self.kept_records_count = 0

    @property
    def end_offset(self) -> int:
        """The log is compacted up to this offset after all groups: less than planned if the map became full."""
        return self._map.latest_offset + 1

    @property
    def sources(self) -> list[Source]:
        """The segments to clean, after `build_offset_map` has determined `end_offset`."""
        return [source for source in self._plan.sources if source.base_offset < self.end_offset]

    def build_offset_map(self) -> Generator[StepBytes, None, None]:
        """Index the latest offset of each key in the dirty part, until the map is full.

        :raises OSError: When the disk fails.
        :raises KafkaError: CORRUPT_MESSAGE.
        """
        first_dirty = self._plan.first_dirty_offset
        transactions = CleanedTransactionMetadata(
            transaction for transaction in self._plan.aborted if transaction.last_offset >= first_dirty
        )
        for source in self._plan.sources:
            if source.end_offset <= first_dirty:
                continue
            for chunk in self._chunks(source):
                *_, (_, last) = iterate_headers(chunk)
                is_dirty = last.last_offset >= first_dirty
                if is_dirty and self._map_keys(read_columns(chunk), transactions):
                    return
                yield len(chunk)
            self._map.update_latest_offset(source.end_offset - 1)

    def _map_keys(self, columns: RecordColumns, transactions: CleanedTransactionMetadata) -> bool:
        """Put the keys into the map; return whether it is full."""
        rows: list[int] = []
        for batch, header in enumerate(columns.headers):
            if header.is_control:
                transactions.can_discard(header, control_type_of(columns, batch))
            elif not transactions.is_aborted(header):
                rows += range(columns.first_rows[batch], columns.first_rows[batch + 1])
        if not self._map.put_rows(columns, rows, self._plan.first_dirty_offset):
            return True
        self._map.update_latest_offset(columns.headers[-1].last_offset)
        return False

    def clean_segments(self, group: Sequence[Source]) -> Generator[StepBytes, None, Segment]:
        """Merge the segments of `group` into one without obsolete records; flushed, with files that end in `.cleaned`.

        If the generator is closed or fails, the files are removed.

        :raises OSError: When the disk fails, or a source does not exist any more.
        :raises KafkaError: CORRUPT_MESSAGE.
        """
        plan, base_offset = self._plan, group[0].base_offset
        cleaned = Segment.create(
            plan.directory, base_offset, OpenFiles(1), now_ms=plan.now_ms, suffix=CLEANED_SUFFIX
        )
        try:
            for source in group:
                for chunk in self._chunks(source):
                    yield len(chunk) + self._write(cleaned, chunk)
            for aborted in self._transactions.take_retained():
                cleaned.transaction_index.append(aborted)
            finish(cleaned, group[-1].segment.path)
        except BaseException:
            discard(cleaned)
            raise
        return cleaned

    def _write(self, cleaned: Segment, chunk: bytes) -> int:
        columns, position = read_columns(chunk), 0
        obsolete = self._map.obsolete_rows(columns)
        batches: list[bytes | bytearray | memoryview] = []
        facts: list[BatchFacts] = []
        for batch, header in enumerate(columns.headers):
            whole = memoryview(chunk)[position : position + header.size_bytes]
            position += header.size_bytes
            kept = self._filter(columns, batch, whole, obsolete)
            if kept is not None:
                batches.append(kept)
                max_timestamp = int.from_bytes(kept[35:43], "big", signed=True)
                facts.append((len(kept), header.last_offset, max_timestamp))
        self.read_bytes += len(chunk)
        if not facts:
            return 0
        data = b"".join(batches)
        cleaned.append_batches(memoryview(data), facts, self._plan.config)
        self.written_bytes += len(data)
        return len(data)

    def _filter(
        self, columns: RecordColumns, batch: int, whole: memoryview, obsolete: bytes | bytearray
    ) -> bytes | bytearray | memoryview | None:
        """Return what is left of a batch; None if it is removed."""
        header = columns.headers[batch]
        rows = range(columns.first_rows[batch], columns.first_rows[batch + 1])
        now_ms, horizon_ms = self._plan.now_ms, header.delete_horizon_ms
        is_past_horizon = horizon_ms is not None and horizon_ms <= now_ms
        if header.is_control:
            can_discard = self._transactions.can_discard(header, control_type_of(columns, batch))
            kept: Sequence[int] = () if can_discard and is_past_horizon else rows
            needs_horizon = can_discard
        else:
            is_aborted = self._transactions.is_aborted(header)
            kept = (
                () if is_aborted else self._latest(columns, rows, obsolete, drop_tombstones=is_past_horizon)
            )
            needs_horizon = any(columns.value_sizes[row] < 0 for row in kept)
        self.read_records_count += len(rows)
        self.kept_records_count += len(kept)
        if not kept:
            return empty_batch(header) if self._plan.needs(header) else None
        if needs_horizon and horizon_ms is None:
            return filter_batch(columns, batch, kept, self._plan.delete_horizon_ms)
        return whole if len(kept) == len(rows) else filter_batch(columns, batch, kept)

    def _latest(
        self, columns: RecordColumns, rows: range, obsolete: bytes | bytearray, *, drop_tombstones: bool
    ) -> Sequence[int]:
        """Return the rows of records that are the latest of their key, or that are not in the map yet."""
        kept: Sequence[int] = rows
        if obsolete.find(1, rows.start, rows.stop) >= 0:
            kept = [row for row in rows if not obsolete[row]]
        if drop_tombstones:
            latest_offset, offsets, value_sizes = (
                self._map.latest_offset,
                columns.offsets,
                columns.value_sizes,
            )
            kept = [row for row in kept if value_sizes[row] >= 0 or offsets[row] > latest_offset]
        return kept

    def _chunks(self, source: Source) -> Iterator[bytes]:
        return checked_chunks(source.segment.path, source.size_bytes, self._step_bytes)


def finish(cleaned: Segment, last: Path) -> None:
    """Flush the files and set their modification time to that of the last source, which retention uses."""
    cleaned.close()
    written_ns = last.stat().st_mtime_ns
    os.utime(cleaned.path, ns=(written_ns, written_ns))
    for path in _files(cleaned):
        disk.sync_path(path)


def discard(cleaned: Segment) -> None:
    """Remove the files of a segment that will not be used."""
    cleaned.abandon()
    unlink_files(_files(cleaned))


def _files(cleaned: Segment) -> list[Path]:
    return [
        offset_file(cleaned.directory, cleaned.base_offset, kind + cleaned.suffix)
        for kind in SEGMENT_SUFFIXES
    ]
