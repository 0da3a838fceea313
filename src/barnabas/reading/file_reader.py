"""Reads ranges of offsets from log directories on a shared disk or in an archive (the transport `files`)."""

import math
import time
from collections.abc import Callable, Generator, Iterator

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.reading.data_loss import DataLossPolicy
from barnabas.reading.file_logs import find_directories, log_start_offset, topic_id_of
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.options import ReadOptions
from barnabas.reading.range_reader import RawBatches, TopicGone
from barnabas.reading.rows import NONE_ABORTED, AbortedRanges
from barnabas.reading.segment_files import SegmentFiles
from barnabas.wire.isolation import Isolation

#: A loss is checked again, because segments may just have been replaced.
_ATTEMPTS_COUNT = 3
_PAUSE_S = 0.5


class FileReader:
    """A `RangeReader` over log directories."""

    def __init__(self, options: ReadOptions, pause: Callable[[float], object] = time.sleep) -> None:
        """:param pause: Waits for that many seconds."""
        self._isolation = options.isolation
        self._losses = DataLossPolicy(fail=options.fail_on_data_loss, option=options.loss_option)
        self._directories = find_directories(options.log_dirs)
        self._pause = pause

    def read(
        self, offset_range: OffsetRange, topic_id: bytes, record_bytes: float = math.inf
    ) -> Iterator[RawBatches]:
        """Yield batches as `RangeReader`; each result is valid until the next one."""
        tp, low, high = offset_range
        try:
            if tp not in self._directories:
                raise TopicGone
            segments = SegmentFiles(self._directories[tp], self._pause)
            log = _Log(tp, topic_id, segments, self._losses, self._pause)
            yield from log.read(low, high, self._isolation)
        except TopicGone:
            self._losses.report(
                f"topic '{tp.topic}' is not in the log directories: what was not read yet of offsets {low} "
                f"to {high} of partition {tp} is gone"
            )

    def close(self) -> None:
        """Do nothing: nothing is open."""


class _Log:
    """One partition's directory, which retention, compaction and deletion may change meanwhile."""

    def __init__(
        self,
        tp: TopicPartition,
        topic_id: bytes,
        segments: SegmentFiles,
        losses: DataLossPolicy,
        pause: Callable[[float], object],
    ) -> None:
        self._tp = tp
        self._topic_id = topic_id
        self._segments = segments
        self._directory = segments.directory
        self._losses = losses
        self._pause = pause

    def read(self, low: int, high: int, isolation: Isolation) -> Iterator[RawBatches]:
        """Yield the batches of [low, high).

        :raises TopicGone: The directory belongs to another topic now.
        """
        try:
            yield from self._read(low, high, isolation)
        except FileNotFoundError as error:
            if self._directory.is_dir():
                raise
            raise TopicGone from error

    def _read(self, low: int, high: int, isolation: Isolation) -> Iterator[RawBatches]:
        self._check_topic()
        position = max(low, self._retained_start(low))
        self._report_removed(low, min(position, high))
        # Read before the segments, because compaction removes index entries together with their records.
        aborted = NONE_ABORTED
        if isolation is Isolation.READ_COMMITTED:
            aborted = self._segments.aborted(position, high)
        for pause_s in (*[_PAUSE_S] * (_ATTEMPTS_COUNT - 1), 0.0):
            position = yield from self._batches(position, high, aborted)
            if position >= high:
                return
            if self._segments.continues_at(high):
                # No further record of the range will appear. Read those that have appeared since, and report the others
                # as removed.
                position = yield from self._batches(position, high, aborted)
                self._report_removed(position, high)
                return
            self._pause(pause_s)  # the last records may not be visible on this machine yet
        self._losses.report(
            f"partition {self._tp} ends at offset {position} now: offsets up to {high} are gone"
        )

    def _batches(self, position: int, high: int, aborted: AbortedRanges) -> Generator[RawBatches, None, int]:
        """Yield the present batches of [position, high), and return the offset behind them."""
        for chunk in self._segments.chunks(position, high):
            self._check_topic()
            self._report_removed(position, chunk.headers[0].base_offset)
            yield RawBatches(chunk.buffer, position, aborted)
            position = chunk.next_offset
        return position

    def _report_removed(self, position: int, next_offset: int) -> None:
        """Report a gap [position, next_offset) at the log's start; a gap behind its start results from compaction."""
        if position >= next_offset:
            return
        start = self._start()
        if start > position:
            gone = f"offsets {position} to {min(start, next_offset)} are gone"
            self._losses.report(f"partition {self._tp} begins at offset {start} now: {gone}")

    def _retained_start(self, low: int) -> int:
        """Return the log start offset, read again if it is above `low`."""
        start = self._start()
        for _ in range(_ATTEMPTS_COUNT - 1):
            if start <= low:
                break
            self._pause(_PAUSE_S)
            start = self._start()
        return start

    def _start(self) -> int:
        return log_start_offset(self._directory, self._tp, self._segments)

    def _check_topic(self) -> None:
        found = topic_id_of(self._directory)
        if ZERO_UUID not in (found, self._topic_id) and found != self._topic_id:
            raise TopicGone
