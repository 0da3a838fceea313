"""The protocol of readers: over the wire (`fetch_reader`), and from log directories (`file_reader`)."""

import math
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from barnabas.base.buffers import Buffer
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.rows import AbortedRanges


class RawBatches(NamedTuple):
    """Complete batches of a partition and their visible part; they may extend beyond the range."""

    batches: Buffer
    low: int  #: records before it were read, or are gone
    aborted: AbortedRanges


class TopicGone(Exception):
    """The topic does not exist any more, or was recreated."""


class RangeReader(Protocol):
    """Reads ranges of partitions; the caller closes it."""

    def read(
        self, offset_range: OffsetRange, topic_id: bytes, record_bytes: float = math.inf
    ) -> Iterator[RawBatches]:
        """Yield every batch with offsets of the range, in order.

        :param record_bytes: Approximate log bytes per offset, if known.
        :raises DataLossError: When records are gone, unless the policy tolerates it.
        """
        ...

    def close(self) -> None: ...
