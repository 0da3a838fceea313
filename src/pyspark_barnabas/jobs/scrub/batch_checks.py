"""What is checked of a partition's batches one after the other, wherever they come from.

A batch is sound when its CRC is right, it begins where the one before it ended, and continues its producer's sequence.
Gaps of either are right where the cleaner has been.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.buffers import Buffer
from barnabas.base.ids import TopicPartition
from barnabas.wire.records.batch import NO_SEQUENCE, SEQUENCE_LIMIT, BatchHeader, crc_matches

#: More findings of one partition are counted, not listed.
FINDINGS_MAX = 1_000

CRC, UNREADABLE, CUT, GAP, ORDER = "crc", "unreadable", "cut", "gap", "order"
SEQUENCE = "sequence"


class Finding(NamedTuple):
    """Damage: the offsets it touches, both included, and the file and position where it was seen.

    Of what came over the wire there is no file, and the position is -1.
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
    """Where something was seen."""

    file: str = ""
    position: int = -1


@dataclass
class Scrubbed:
    """What was looked at of one partition, and what was found; `next_offset` is behind the last batch."""

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
    """A walk over the batches of a partition, which `result` grows with."""

    def __init__(self, partition: TopicPartition) -> None:
        self._partition = partition
        self.cleaned = 0  #: below it, gaps are a cleaner's
        self.expected = 0  #: the offset that comes next
        self.is_certain = True  #: whether the batch before can be believed to end where it says
        self._producers: dict[int, _LastBatch] = {}
        self.result = Scrubbed(*partition)

    def begin_at(self, offset: int) -> None:
        """Expect this offset first."""
        self.expected = self.result.first_offset = offset

    def find(self, kind: str, first: int, last: int, place: FilePosition, what: str) -> None:
        """Note damage."""
        self.result.findings_count += 1
        if len(self.result.findings) < FINDINGS_MAX:
            self.result.findings.append(Finding(kind, *self._partition, first, last, *place, what))

    def resume_at(self, offset: int) -> None:
        """Go on behind what could not be read."""
        self.expected = max(self.expected, offset)
        self.is_certain = True
        self._producers.clear()

    def batch(self, buffer: Buffer, start: int, header: BatchHeader, place: FilePosition) -> bool:
        """Whether the CRC is right."""
        result = self.result
        first, last = header.base_offset, header.last_offset
        is_first = result.batches_count == 0
        result.batches_count += 1
        result.records_count += header.records_count
        result.size_bytes += header.size_bytes
        if not crc_matches(buffer, start, header):
            self.find(CRC, first, max(first, last), place, "the CRC does not match")
            self._producers.clear()
            self.expected = max(self.expected, first + 1)
            self.is_certain = False
            return False
        if not self.is_certain and first > self.expected:
            self.expected = first
        self.is_certain = True
        if first > self.expected and first > self.cleaned:
            what = f"offset {self.expected} is expected here, not {first}"
            self.find(GAP, self.expected, first - 1, place, what)
            self._producers.clear()
        elif last < first or (first < self.expected and not (is_first and last >= self.expected)):
            what = f"offset {self.expected} is expected here, not {first} to {last}"
            self.find(ORDER, first, max(first, last), place, what)
            self._producers.clear()
            return True
        self._sequence(header, place)
        self.expected = max(self.expected, header.next_offset)
        return True

    def _sequence(self, header: BatchHeader, place: FilePosition) -> None:
        if not header.has_producer_id or header.is_control or header.base_sequence == NO_SEQUENCE:
            return
        before = self._producers.get(header.producer_id)
        self._producers[header.producer_id] = _LastBatch(
            header.producer_epoch, header.last_sequence, header.next_offset
        )
        if before is None:
            return
        is_next_epoch = header.producer_epoch > before.epoch
        expected = 0 if is_next_epoch else (before.sequence + 1) % SEQUENCE_LIMIT
        may_lack = before.next_offset < self.cleaned  # the cleaner may have taken batches out between
        if header.producer_epoch < before.epoch:
            what = (
                f"producer {header.producer_id} has epoch {header.producer_epoch} after epoch {before.epoch}"
            )
        elif header.base_sequence != expected and not may_lack:
            what = (
                f"producer {header.producer_id} goes on with sequence {header.base_sequence}, "
                f"not with {expected}, in epoch {header.producer_epoch}"
            )
        else:
            return
        self.find(SEQUENCE, header.base_offset, header.last_offset, place, what)
