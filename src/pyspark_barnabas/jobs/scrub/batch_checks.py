"""Checks of a partition's batches, one after the other, from files or from the wire.

A batch is sound if its CRC is correct, it begins where the one previous it ended, and it continues its producer's
sequence. Gaps in offsets and sequences are allowed below the offset up to which the cleaner has compacted.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.buffers import Buffer
from barnabas.base.ids import TopicPartition
from barnabas.wire.records.batch import NO_SEQUENCE, SEQUENCE_LIMIT, BatchHeader, crc_matches

#: Further findings of one partition are counted but not listed.
FINDINGS_MAX = 1_000

CRC, UNREADABLE, CUT, GAP, ORDER = "crc", "unreadable", "cut", "gap", "order"
SEQUENCE = "sequence"


class Finding(NamedTuple):
    """Damage: the affected offsets, both inclusive, and the file and position.

    For batches read over the wire the file is empty and the position is -1.
    """

    kind: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    file: str
    position: int
    what: str


class FilePosition(NamedTuple):
    """Position of a finding."""

    file: str = ""
    position: int = -1


@dataclass
class Scrubbed:
    """Result of checking one partition; `next_offset` is the offset after the last batch."""

    topic: str
    partition: int
    segments_count: int = 0
    batches_count: int = 0
    records_count: int = 0
    size_bytes: int = 0
    first_offset: int = 0
    next_offset: int = 0
    findings_count: int = 0
    findings: list[Finding] = field(default_factory=list)


class _LastBatch(NamedTuple):
    epoch: int
    sequence: int
    next_offset: int


class BatchChecks:
    """Checks the batches of a partition in order, and collects counts and findings in `result`."""

    def __init__(self, partition: TopicPartition) -> None:
        self._partition = partition
        self.cleaned = 0  #: below this offset, gaps are the result of compaction
        self.expected = 0  #: the next offset
        self.is_certain = True  #: whether the end of the previous batch is reliable
        self._producers: dict[int, _LastBatch] = {}
        self.result = Scrubbed(*partition)

    def begin_at(self, offset: int) -> None:
        """Expect this offset first."""
        self.expected = self.result.first_offset = offset

    def add_finding(self, kind: str, first: int, last: int, position: FilePosition, what: str) -> None:
        self.result.findings_count += 1
        if len(self.result.findings) < FINDINGS_MAX:
            self.result.findings.append(Finding(kind, *self._partition, first, last, *position, what))

    def resume_at(self, offset: int) -> None:
        """Continue after a range that could not be read."""
        self.expected = max(self.expected, offset)
        self.is_certain = True
        self._producers.clear()

    def batch(self, buffer: Buffer, start: int, header: BatchHeader, position: FilePosition) -> bool:
        """Check a batch; return whether its CRC is correct."""
        result = self.result
        first, last = header.base_offset, header.last_offset
        is_first = result.batches_count == 0
        result.batches_count += 1
        result.records_count += header.records_count
        result.size_bytes += header.size_bytes
        if not crc_matches(buffer, start, header):
            self.add_finding(CRC, first, max(first, last), position, "CRC mismatch")
            self._producers.clear()
            self.expected = max(self.expected, first + 1)
            self.is_certain = False
            return False
        if not self.is_certain and first > self.expected:
            self.expected = first
        self.is_certain = True
        if first > self.expected and first > self.cleaned:
            what = f"expected offset {self.expected}, not {first}"
            self.add_finding(GAP, self.expected, first - 1, position, what)
            self._producers.clear()
        elif last < first or (first < self.expected and not (is_first and last >= self.expected)):
            what = f"expected offset {self.expected}, not {first} to {last}"
            self.add_finding(ORDER, first, max(first, last), position, what)
            self._producers.clear()
            return True
        self._check_sequence(header, position)
        self.expected = max(self.expected, header.next_offset)
        return True

    def _check_sequence(self, header: BatchHeader, position: FilePosition) -> None:
        if not header.has_producer_id or header.is_control or header.base_sequence == NO_SEQUENCE:
            return
        previous = self._producers.get(header.producer_id)
        self._producers[header.producer_id] = _LastBatch(
            header.producer_epoch, header.last_sequence, header.next_offset
        )
        if previous is None:
            return
        is_next_epoch = header.producer_epoch > previous.epoch
        expected = 0 if is_next_epoch else (previous.sequence + 1) % SEQUENCE_LIMIT
        may_have_gap = previous.next_offset < self.cleaned  # the cleaner may have removed batches in between
        if header.producer_epoch < previous.epoch:
            what = f"producer {header.producer_id} has epoch {header.producer_epoch} after epoch {previous.epoch}"
        elif header.base_sequence != expected and not may_have_gap:
            what = (
                f"producer {header.producer_id} continues with sequence {header.base_sequence} "
                f"instead of {expected} in epoch {header.producer_epoch}"
            )
        else:
            return
        self.add_finding(SEQUENCE, header.base_offset, header.last_offset, position, what)
