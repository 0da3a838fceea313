"""Check of one partition's files, batch by batch; read-only.

Batches are checked by `batch_checks`; the log is compacted below the offset in `cleaner-offset-checkpoint`. An index
entry is sound if a batch begins at its position, and its offset is the last of that batch or of a later one.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import CLEANER_OFFSET_FILE, MalformedFile
from barnabas.log.files import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, offset_file
from barnabas.log.segments.offset_index import OffsetIndex
from barnabas.log.segments.time_index import TimeIndex
from barnabas.reading.file_logs import checkpointed_offset
from barnabas.reading.segment_files import SegmentFiles
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import BATCH_OVERHEAD_BYTES, BatchHeader, iterate_headers
from pyspark_barnabas.jobs.scrub.batch_checks import CUT, UNREADABLE, BatchChecks, FilePosition, Scrubbed

_CHUNK_BYTES = 8 * 1024 * 1024
_ATTEMPTS_COUNT = 2
_PAUSE_S = 0.5
INDEX, TIME_INDEX, CHECKPOINT = "index", "timeindex", "checkpoint"


class _BatchEntry(NamedTuple):
    """A batch of the segment that is being read."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    is_sound: bool  #: whether its header is reliable


def scrub_partition(
    tp: TopicPartition,
    directory: Path,
    end: int,
    *,
    allow_gaps: bool = False,
    pause: Callable[[float], object],
) -> Scrubbed:
    """Check all batches of a partition; only those at or after `end` may be incomplete.

    On findings the partition is checked again, because a broker may have replaced segments meanwhile.

    :raises FileNotFoundError: The directory does not exist.
    """
    result = Scrubbed(*tp)
    for attempt in range(_ATTEMPTS_COUNT):
        if attempt:
            pause(_PAUSE_S)
        try:
            result = _Scrub(tp, directory, end, allow_gaps).run(pause)
        except FileNotFoundError:
            if attempt == _ATTEMPTS_COUNT - 1:
                raise
            continue
        if not result.findings_count:
            break
    return result


class _Scrub:
    """One pass over the files."""

    def __init__(self, tp: TopicPartition, directory: Path, end: int, allow_gaps: bool) -> None:
        self._tp = tp
        self._directory = directory
        self._end = end
        self._checks = BatchChecks(tp)
        self._checks.cleaned = end if allow_gaps else self._cleaned_end()

    def run(self, pause: Callable[[float], object]) -> Scrubbed:
        bases = SegmentFiles(self._directory, pause).base_offsets()
        checks = self._checks
        checks.begin_at(bases[0] if bases else 0)
        for base_offset, next_base in zip(bases, [*bases[1:], None], strict=True):
            self._segment(base_offset, next_base)
        if bases and bases[-1] <= checks.cleaned:
            checks.expected = max(checks.expected, bases[-1])  # compaction may have removed everything before
        if checks.expected < self._end and checks.is_certain:
            path = offset_file(self._directory, bases[-1] if bases else 0, LOG_SUFFIX)
            size_bytes = path.stat().st_size if path.exists() else 0
            what = f"the log ends at offset {checks.expected} instead of {self._end}"
            self._add_finding(CUT, checks.expected, self._end - 1, path, size_bytes, what)
        checks.result.next_offset = checks.expected
        return checks.result

    def _cleaned_end(self) -> int:
        path = self._directory.parent / CLEANER_OFFSET_FILE
        try:
            return checkpointed_offset(path, self._tp)
        except MalformedFile as error:
            self._add_finding(CHECKPOINT, 0, max(self._end - 1, 0), path, 0, str(error))
            return 0

    def _add_finding(self, kind: str, first: int, last: int, path: Path, position: int, what: str) -> None:
        self._checks.add_finding(kind, first, last, FilePosition(str(path), position), what)

    def _segment(self, base_offset: int, next_base: int | None) -> None:
        path = offset_file(self._directory, base_offset, LOG_SUFFIX)
        segment_end = self._end if next_base is None else next_base
        checks = self._checks
        batches: list[_BatchEntry] = []
        position = 0
        with path.open("rb", buffering=0) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            try:
                for buffer, start, header in _batches(file.fileno(), size_bytes):
                    is_sound = checks.batch(buffer, start, header, FilePosition(str(path), position))
                    batches.append(
                        _BatchEntry(
                            position, header.base_offset, header.last_offset, header.max_timestamp, is_sound
                        )
                    )
                    position += header.size_bytes
                broken = (CUT, "the file ends in the middle of a batch") if position < size_bytes else None
            except KafkaError as error:
                broken = (UNREADABLE, str(error))
        checks.result.segments_count += 1
        if broken is not None and (next_base is not None or checks.expected < self._end):
            kind, what = broken
            last = max(checks.expected, segment_end - 1)
            self._add_finding(kind, checks.expected, last, path, position, what)
            checks.resume_at(segment_end)
        complete = broken is None and all(batch.is_sound for batch in batches)
        self._index(base_offset, batches, complete=complete)
        self._time_index(base_offset, batches, complete=complete)

    def _index(self, base_offset: int, batches: list[_BatchEntry], *, complete: bool) -> None:
        """Check the offset index; entries may be missing, as in an active segment, but none may be wrong."""
        path = offset_file(self._directory, base_offset, INDEX_SUFFIX)
        index = OffsetIndex(path, base_offset)
        at = {batch.position: slot for slot, batch in enumerate(batches)}
        slots = {batch.last_offset: slot for slot, batch in enumerate(batches)}
        last_position = batches[-1].position if batches else -1
        for number, (relative, position) in enumerate(OffsetIndex.ENTRY.iter_unpack(index.entries)):
            offset = base_offset + relative
            if position > last_position and (not complete or offset >= self._end):
                continue  # the entry is for batches that could not be read
            slot = at.get(position)
            if slot is None:
                what = f"no batch begins at position {position}, which the entry gives for offset {offset}"
            elif not batches[slot].is_sound:
                continue
            elif slots.get(offset, -1) < slot and (complete or offset < batches[slot].base_offset):
                what = f"the batch at position {position} ends with offset {batches[slot].last_offset}, not {offset}"
            else:
                continue
            self._add_finding(INDEX, offset, offset, path, number * OffsetIndex.ENTRY.size, what)

    def _time_index(self, base_offset: int, batches: list[_BatchEntry], *, complete: bool) -> None:
        """Check the time index: no batch up to an entry's offset may be later, or look-ups would miss it."""
        path = offset_file(self._directory, base_offset, TIME_INDEX_SUFFIX)
        entries = TimeIndex.ENTRY.iter_unpack(TimeIndex(path, base_offset).entries)
        last_offset = max((batch.last_offset for batch in batches if batch.is_sound), default=base_offset)
        slot, latest = 0, -1
        for number, (timestamp_ms, relative) in enumerate(entries):
            offset = base_offset + relative
            while slot < len(batches) and (batches[slot].last_offset <= offset or not batches[slot].is_sound):
                latest = max(latest, batches[slot].max_timestamp if batches[slot].is_sound else -1)
                slot += 1
            if offset > last_offset and (not complete or offset >= self._end):
                continue
            if not base_offset <= offset <= last_offset:
                what = f"the entry is for offset {offset}, which is not in this segment"
            elif latest > timestamp_ms:
                what = f"a batch up to offset {offset} has timestamp {latest}, later than the entry's {timestamp_ms}"
            else:
                continue
            self._add_finding(TIME_INDEX, offset, offset, path, number * TimeIndex.ENTRY.size, what)


def _batches(fd: int, size_bytes: int) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """Yield every complete batch: a buffer, the batch's start in it, and its header.

    :raises KafkaError: CORRUPT_MESSAGE if the data is not a batch.
    """
    position, read_bytes = 0, _CHUNK_BYTES
    while position + BATCH_OVERHEAD_BYTES <= size_bytes:
        buffer = os.pread(fd, read_bytes, position)
        used_bytes = 0
        for start, header in iterate_headers(buffer):
            yield buffer, start, header
            used_bytes = start + header.size_bytes
        if not used_bytes:
            if position + len(buffer) >= size_bytes or not buffer:
                return
            read_bytes *= 2
        position += used_bytes
