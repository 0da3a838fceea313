"""What to read, and how: the options of every reader. No IO."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from barnabas.base.ids import TopicPartition
from barnabas.reading.connection import ConnectionOptions
from barnabas.wire.isolation import Isolation

#: The markers among offsets by partition.
LATEST_MARKER = -1
EARLIEST_MARKER = -2

FETCH_BYTES = 16 * 1024 * 1024


class Transport(Enum):
    """How a task gets log data."""

    FETCH = "fetch"
    FILES = "files"


@dataclass(frozen=True)
class Subscribe:
    """All partitions of these topics."""

    topics: tuple[str, ...]


@dataclass(frozen=True)
class SubscribePattern:
    """All partitions of the topics whose whole name matches a regular expression; see `topic_patterns`."""

    pattern: str


@dataclass(frozen=True)
class Assign:
    partitions: frozenset[TopicPartition]


TopicSelection = Subscribe | SubscribePattern | Assign


class Edge(Enum):
    """One end of a log."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True)
class SpecificOffsets:
    """An offset or a marker for each partition."""

    by_partition: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class Times:
    """A time for each partition, in ms since the epoch."""

    by_partition: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class Time:
    """One time for all partitions, in ms since the epoch."""

    timestamp_ms: int


OffsetRangeLimit = Edge | SpecificOffsets | Times | Time


@dataclass(frozen=True)
class ReadOptions:
    """All options of reading a range of offsets of each partition."""

    connection: ConnectionOptions
    selection: TopicSelection
    starting: OffsetRangeLimit
    ending: OffsetRangeLimit
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    #: Whether a starting time after all records means the end instead of an error.
    start_may_be_latest: bool = False
    fail_on_data_loss: bool = True
    loss_option: str = "failOnDataLoss"  #: the name of that option, for messages
    #: How often ends are queried that have moved backwards.
    offset_attempts_count: int = 3
    offset_retry_ms: int = 1_000
    transport: Transport = Transport.FETCH
    log_dirs: tuple[str, ...] = ()
    fetch_bytes: int = FETCH_BYTES
    check_crcs: bool = True
    null_times: bool = False  #: whether timestamps that microseconds cannot hold are null instead of an error
