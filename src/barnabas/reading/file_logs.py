"""Queries log directories for planning, without brokers: partitions, offsets, sizes.

Reads only what the checkpoints cover: uncommitted up to the high watermark, committed up to the last stable offset. If
brokers are given, they are asked for these offsets, because checkpoints are some seconds old.
"""

import time
from bisect import bisect_right
from collections.abc import Collection, Mapping
from pathlib import Path

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.admin.offsets import EARLIEST, OffsetSpec
from barnabas.log.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    MalformedFile,
    read_offsets,
    read_partition_metadata,
)
from barnabas.log.files import SNAPSHOT_SUFFIX, offset_file
from barnabas.log.log_directory import parse_partition
from barnabas.log.producers.producer_snapshot import read_snapshot, snapshot_offsets
from barnabas.reading.logs import NO_OFFSET
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.option_values import OptionError
from barnabas.reading.options import Assign, ReadOptions, Subscribe, TopicSelection
from barnabas.reading.segment_files import SegmentFiles
from barnabas.reading.topic_patterns import topic_matcher
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from barnabas.wire.records.batch import iterate_headers
from barnabas.wire.records.control import read_end_marker
from barnabas.wire.records.record import decode_batch


def find_directories(log_dirs: Collection[str]) -> dict[TopicPartition, Path]:
    """Return the directory of each partition.

    :raises OptionError: When a log directory does not exist, or two contain the same partition.
    """
    directories: dict[TopicPartition, Path] = {}
    for log_dir in log_dirs:
        path = Path(log_dir)
        if not path.is_dir():
            message = f"option 'logDirs': directory '{log_dir}' not found; it must exist on every executor"
            raise OptionError(message)
        for entry in sorted(path.iterdir()):
            tp = parse_partition(entry.name)
            if tp is None or not entry.is_dir():
                continue
            if tp in directories:
                message = f"partition {tp} is in {directories[tp].parent} and in {path}: name one of them"
                raise OptionError(message)
            directories[tp] = entry
    return directories


class FileLogs:
    """`Logs` of log directories without brokers."""

    def __init__(self, options: ReadOptions) -> None:
        self._log_dirs = options.log_dirs
        self._isolation = options.isolation
        self._directories: dict[TopicPartition, Path] = {}

    def partitions(self, selection: TopicSelection) -> dict[TopicPartition, bytes]:
        self._directories = find_directories(self._log_dirs)
        topics = {tp.topic for tp in self._directories}
        match selection:
            case Subscribe(names):
                _check_known(set(names), topics)
                selected = {tp for tp in self._directories if tp.topic in names}
            case Assign(topic_partitions):
                _check_known({tp.topic for tp in topic_partitions}, topics)
                selected = set(topic_partitions & self._directories.keys())
            case _:
                matches = topic_matcher(selection.pattern)
                named = {topic for topic in topics if not topic.startswith("__") and matches(topic)}
                selected = {tp for tp in self._directories if tp.topic in named}
        return {tp: topic_id_of(self._directories[tp]) for tp in sorted(selected)}

    def offsets(self, specs: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        return {tp: self._offset(tp, spec) for tp, spec in specs.items()}

    def record_bytes(self, ranges: Collection[OffsetRange]) -> dict[TopicPartition, float]:
        averages = {}
        for tp in {offset_range.tp for offset_range in ranges}:
            offsets_count = self._high_watermark(tp) - self._start(tp)
            if offsets_count > 0:
                averages[tp] = self._segments(tp).size_bytes() / offsets_count
        return averages

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _offset(self, tp: TopicPartition, spec: OffsetSpec) -> int:
        start = self._start(tp)
        if spec == EARLIEST:
            return start
        end = self._high_watermark(tp)
        if self._isolation is Isolation.READ_COMMITTED:
            end = max(start, last_stable_offset(self._segments(tp), end))
        if spec.timestamp_ms < 0:
            return end
        return _offset_of_time(self._segments(tp), start, end, spec.timestamp_ms)

    def _start(self, tp: TopicPartition) -> int:
        return log_start_offset(self._directories[tp], tp, self._segments(tp))

    def _high_watermark(self, tp: TopicPartition) -> int:
        path = self._directories[tp].parent / HIGH_WATERMARK_FILE
        if not path.exists():
            message = f"{path} not found, which limits what may be read; set kafka.bootstrap.servers instead"
            raise OptionError(message)
        return max(checkpointed_offset(path, tp), self._start(tp))

    def _segments(self, tp: TopicPartition) -> SegmentFiles:
        return SegmentFiles(self._directories[tp], time.sleep)


def log_start_offset(directory: Path, tp: TopicPartition, segments: SegmentFiles) -> int:
    """Return the first readable offset, from the checkpoint and the segments.

    :raises FileNotFoundError: When the directory is gone.
    """
    checkpointed = checkpointed_offset(directory.parent / LOG_START_OFFSET_FILE, tp)
    return max([checkpointed, *segments.base_offsets()[:1]])


def checkpointed_offset(path: Path, tp: TopicPartition) -> int:
    """Return the offset of a partition in a checkpoint; 0 without one, also while Kafka has created but not written the
    file.

    :raises MalformedFile: When the file is damaged.
    """
    is_written = path.exists() and path.stat().st_size > 0
    return read_offsets(path).get(tp, 0) if is_written else 0


def last_stable_offset(segments: SegmentFiles, high_watermark: int) -> int:
    """Return the first offset of a transaction that is open at the high watermark, or the high watermark."""
    snapshot, opened = _newest_snapshot(segments.directory, high_watermark)
    for chunk in segments.chunks(snapshot, high_watermark):
        for position, header in iterate_headers(chunk.buffer):
            if header.base_offset >= high_watermark:
                break
            if header.next_offset <= snapshot or not header.is_transactional:
                continue
            if not header.is_control:
                opened.setdefault(header.producer_id, header.base_offset)
            elif read_end_marker(chunk.buffer, position, header) is not None:
                opened.pop(header.producer_id, None)
    return min([*opened.values(), high_watermark])


def _newest_snapshot(directory: Path, high_watermark: int) -> tuple[int, dict[int, int]]:
    """Return the offset of the newest valid producer snapshot, and its open transactions."""
    offsets = snapshot_offsets(directory)
    for offset in reversed(offsets[: bisect_right(offsets, high_watermark)]):
        try:
            entries = read_snapshot(offset_file(directory, offset, SNAPSHOT_SUFFIX))
        except (MalformedFile, FileNotFoundError):
            continue
        open_since = {entry.producer_id: entry.current_txn_start_offset for entry in entries}
        return offset, {producer_id: first for producer_id, first in open_since.items() if first >= 0}
    return 0, {}


def _offset_of_time(segments: SegmentFiles, start: int, end: int, timestamp_ms: int) -> int:
    """Return the first record of [start, end) with at least that timestamp."""
    for chunk in segments.chunks(start, end):
        for position, header in iterate_headers(chunk.buffer):
            if header.max_timestamp < timestamp_ms:
                continue
            for record in decode_batch(chunk.buffer, position, header):
                if record.timestamp_ms >= timestamp_ms and start <= record.offset < end:
                    return record.offset
    return NO_OFFSET


def _check_known(names: set[str], known: set[str]) -> None:
    missing = ", ".join(f"'{name}'" for name in sorted(names - known))
    if missing:
        message = f"the log directories do not contain the topics {missing}"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


def topic_id_of(directory: Path) -> bytes:
    return read_partition_metadata(directory) or ZERO_UUID
