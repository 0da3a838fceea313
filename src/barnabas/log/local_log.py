"""The segment files of one replica: append, roll, flush, remove, close."""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.base import disk
from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.log.checkpoints import PARTITION_METADATA_FILE
from barnabas.log.files import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    NO_RESOURCES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_file,
)
from barnabas.log.log_config import LogConfig
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import Segment
from barnabas.log.segments.segments import FilePart, Segments
from barnabas.wire.errors import ErrorCode, KafkaError


class Flushed(NamedTuple):
    """What a flush has written to the disk."""

    rewrites_count: int  #: of the log when the flush began
    end_offset: int


class LocalLog:
    """Segments in a directory, and how much of them is flushed.

    Not thread-safe, except for `sync`. A disk error takes the log offline for good: the caller turns it into
    KAFKA_STORAGE_ERROR with `take_offline`.
    """

    def __init__(
        self,
        directory: Path,
        topic_partition: TopicPartition,
        segments: Segments,
        *,
        clock: Clock,
        random: Random,
        open_files: OpenFiles,
        recovery_point: int,
        config: LogConfig,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.segments = segments
        #: Everything before this offset is flushed to the disk; at most the log end offset.
        self.recovery_point = recovery_point
        #: Why the log is offline, or None if it is online.
        self.failure: str | None = None
        self.on_failure: Callable[[OSError], None] | None = None
        #: Whether a truncation has cut a segment that was not flushed since. A power failure may undo the cut, although
        #: it keeps later segments.
        self.has_unsynced_cut = False
        #: Segments that were rolled since the last flush. Their indexes were written then, and are not flushed; their
        #: records may be.
        self._rolled: list[Segment] = []
        #: Whether files were created or renamed since the directory was last flushed.
        self.unsynced_directory = True
        self.jitter_ms = 0  #: added to the age at which the active segment is rolled
        self._clock = clock
        self._random = random
        self._open_files = open_files
        self._flushed_ms = clock.monotonic_ms()
        self._draw_jitter(config)
        for segment in segments:
            segment.on_failure = self.take_offline
            segment.use_open_files(open_files)

    # Failing

    def offline_error(self) -> KafkaError:
        message = f"{self.topic_partition} is offline: {self.failure}"
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    def take_offline(self, error: OSError) -> KafkaError:
        """Stop all reads and writes after a disk error; return the error to raise.

        Does nothing if the log is offline already, for example because it was deleted.
        """
        if self.failure is None:
            self.failure = f"the disk of {self.directory.parent} failed: {error}"
            if self.on_failure is not None:
                self.on_failure(error)
        return self.offline_error()

    def failed_read(self, error: OSError) -> KafkaError:
        """Return the error to raise after a failed read, which takes the log offline if the disk is the cause."""
        if error.errno in NO_RESOURCES:
            message = f"{self.topic_partition} cannot be read now: {error}"
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        return self.take_offline(error)

    # Segments. Methods raise OSError if the disk fails.

    def roll(self, base_offset: int, config: LogConfig) -> Segment:
        """Start a new active segment."""
        self.segments.active.close()
        self._rolled.append(self.segments.active)
        segment = self._create_segment(base_offset, config)
        self.segments.append(segment)
        return segment

    def _create_segment(self, base_offset: int, config: LogConfig) -> Segment:
        self.unsynced_directory = True
        self._draw_jitter(config)
        segment = Segment.create(
            self.directory,
            base_offset,
            self._open_files,
            now_ms=self._clock.wall_ms(),
            preallocate_bytes=config.preallocate_bytes,
        )
        segment.on_failure = self.take_offline
        return segment

    def _draw_jitter(self, config: LogConfig) -> None:
        """Draw a random delay, so that segments of many partitions do not all roll at the same time."""
        jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
        self.jitter_ms = self._random.randrange(jitter_ms) if jitter_ms else 0

    def remove_first(self, count: int) -> list[Path]:
        """Remove the oldest segments; return the renamed files, which are to be unlinked later."""
        return self._mark_deleted(self.segments.remove_first(count))

    def truncate_to(self, offset: int) -> list[Path]:
        """Remove all batches from `offset` on, which is in a segment; return the files to unlink later."""
        index = self.segments.floor_index(offset)
        removed: list[Path] = []
        if index + 1 < len(self.segments):
            removed = self._mark_deleted(self.segments.remove_from(index + 1))
        self.segments.active.truncate_to(offset, self._clock.wall_ms())
        self.has_unsynced_cut = True
        self.unsynced_directory |= bool(removed)
        # The cut is flushed with the segment: a power failure must not undo it while later segments stay.
        self.recovery_point = min(self.recovery_point, self.segments.active.base_offset)
        return removed

    def start_at(self, offset: int, config: LogConfig) -> list[Path]:
        """Remove all segments and start with an empty one; return the files to unlink later."""
        removed = self._mark_deleted(list(self.segments))
        self.segments.replace_all(self._create_segment(offset, config))
        self.recovery_point = offset
        return removed

    def replace(self, old: Sequence[Segment], new: Segment) -> list[Path]:
        """Replace neighbouring segments by `new`, whose files end in `.cleaned`; return the files to unlink later.

        After a crash at any point the next start either finds all of `old` or completes the replacement.
        """
        assert self.segments.contains_run(old), "the segments to replace must still belong to the log"
        self.unsynced_directory = True
        new.change_suffix(SWAP_SUFFIX)
        removed = [path for segment in old for path in segment.mark_deleted()]
        removed += self._mark_snapshots_deleted(old[1:])
        new.change_suffix("")
        new.on_failure = self.take_offline
        new.use_open_files(self._open_files)
        self.segments.replace(old, new)
        return removed

    def _mark_deleted(self, segments: Sequence[Segment]) -> list[Path]:
        renamed = [path for segment in segments for path in segment.mark_deleted()]
        return renamed + self._mark_snapshots_deleted(segments)

    def _mark_snapshots_deleted(self, segments: Sequence[Segment]) -> list[Path]:
        paths = [offset_file(self.directory, segment.base_offset, SNAPSHOT_SUFFIX) for segment in segments]
        return [
            disk.rename(path, path.with_name(path.name + DELETED_SUFFIX)) for path in paths if path.exists()
        ]

    def relocate(self, path: Path) -> None:
        """Rename the directory within the same disk; open files stay open."""
        self.directory = disk.rename(self.directory, path)
        self.unsynced_directory = True
        for segment in self.segments:
            segment.relocate(path)

    def use_open_files(self, open_files: OpenFiles) -> None:
        """Use `open_files` from now on to limit the open segments."""
        self._open_files = open_files
        for segment in self.segments:
            segment.use_open_files(open_files)

    # Reading

    def locate(self, start_offset: int, max_bytes: int, log_end_offset: int) -> FilePart:
        """Return the file range of the batches from `start_offset` on, in one segment, so that a thread can read them.

        It is cut at `max_bytes`, even inside a batch, but always contains the first batch. Empty at the log end offset.

        :raises KafkaError: KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE for damaged files.
        """
        if self.failure is not None:
            raise self.offline_error()
        try:
            segment, position, size_bytes = self.segments.find(
                start_offset, max_bytes, log_end_offset, log_end_offset, whole_batch=True
            )
        except OSError as error:
            raise self.take_offline(error) from error
        is_last = segment is self.segments.active and position + size_bytes == segment.size_bytes
        return FilePart(segment.path, position, size_bytes, is_last)

    def size_between(self, start_offset: int, end_offset: int) -> int | None:
        """Return the size of the batches between two offsets; None if a segment begins at the first or between them.

        :raises KafkaError: CORRUPT_MESSAGE for damaged files, KAFKA_STORAGE_ERROR.
        """
        index = self.segments.floor_index(start_offset)
        segment = self.segments[index]
        if self.segments.floor_index(end_offset) != index or (index and start_offset == segment.base_offset):
            return None
        try:
            return segment.position_of(end_offset) - segment.position_of(start_offset)
        except OSError as error:
            raise self.take_offline(error) from error

    # Flushing

    def flush_due(self, now_ms: int, log_end_offset: int, flush_ms: int) -> bool:
        """Whether `flush.ms` has passed (on the monotonic clock), or a segment was rolled and is not flushed yet.

        Flushing rolled segments means, as in Apache Kafka, that only the active one needs recovery after a crash.
        """
        if self.failure is not None or self.is_flushed(log_end_offset):
            return False
        is_rolled = bool(self._rolled) or self.recovery_point < self.segments.active.base_offset
        return is_rolled or now_ms - self._flushed_ms >= flush_ms

    def is_flushed(self, log_end_offset: int) -> bool:
        """Whether there is nothing to flush up to the end of the log."""
        return log_end_offset == self.recovery_point and not self.has_unsynced_cut and not self._rolled

    def sync(self, log_end_offset: int, snapshot_offset: int) -> None:
        """Flush all segments up to `log_end_offset`, and the directory. Blocks.

        May run in a thread while the event loop appends: it opens its own file descriptors and flushes only what
        existed when it began.

        :raises OSError: If the disk fails, or failed before: a later flush that succeeds would prove nothing.
        """
        if self.failure is not None:
            raise OSError(errno.EIO, self.failure)
        self._flushed_ms = self._clock.monotonic_ms()
        rolled = tuple(self._rolled)
        if log_end_offset > self.recovery_point or self.has_unsynced_cut or rolled:
            for segment in dict.fromkeys((*rolled, *self.segments.since(self.recovery_point))):
                self.sync_segment(segment)
            del self._rolled[: len(rolled)]
        if self.unsynced_directory:
            self.unsynced_directory = False
            # Without its topic id, the log would be a stray after a crash.
            disk.sync_path(self.directory / PARTITION_METADATA_FILE)
            disk.sync_path(offset_file(self.directory, snapshot_offset, SNAPSHOT_SUFFIX))
            disk.sync_path(self.directory)
            disk.sync_path(self.directory.parent)

    def mark_flushed(self, end_offset: int) -> None:
        """Note that everything before an offset is flushed."""
        self.recovery_point = max(self.recovery_point, end_offset)
        self.has_unsynced_cut = False

    def sync_segment(self, segment: Segment) -> None:
        disk.sync_path(segment.path)
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, SNAPSHOT_SUFFIX):
            disk.sync_path(offset_file(self.directory, segment.base_offset, suffix))

    # Closing

    def close_files(self) -> None:
        *rolled, active = self.segments
        for segment in rolled:
            segment.close_counted()
        active.close()

    def abandon(self) -> None:
        """Close the files without writing anything, before the directory is deleted."""
        for segment in self.segments:
            segment.abandon()
