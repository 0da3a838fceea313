"""Reads topics as Arrow record batches, for Polars, DuckDB, pandas and other tools.

for batch in read_topic("127.0.0.1:9092", "orders", columns=["value", "timestamp"]):
    print(batch.num_rows)
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any, Literal, Self, TypeAlias

if None in map(find_spec, ("pyarrow", "numpy", "numba")):
    raise ImportError(
        "barnabas.arrow needs pyarrow, numpy and numba: pip install '.[arrow]' in a checkout of Barnabas"
    )

import pyarrow as pa

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import LATEST
from barnabas.client.core.properties import login_from_properties, tls_from_properties
from barnabas.reading.connection import ConnectionOptions
from barnabas.reading.data_loss import DataLossError
from barnabas.reading.logs import Logs
from barnabas.reading.offset_range import OffsetRange, PlannedRange
from barnabas.reading.opening import connected_logs
from barnabas.reading.option_values import number
from barnabas.reading.options import (
    EARLIEST_MARKER,
    LATEST_MARKER,
    Assign,
    Edge,
    OffsetRangeLimit,
    ReadOptions,
    SpecificOffsets,
    Subscribe,
    SubscribePattern,
    Time,
    TopicSelection,
)
from barnabas.reading.planning import plan_ranges
from barnabas.reading.rows import ARROW_TYPES, arrow_schema_of
from barnabas.reading.scan import scan_records
from barnabas.reading.topic_patterns import topic_matcher
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation

__all__ = ["COLUMNS", "DataLossError", "TopicBatches", "read_topic"]

#: The columns that are read by default: those of Spark's Kafka source. There is also `headers`.
COLUMNS = tuple(name for name in ARROW_TYPES if name != "headers")

#: A start or an end: "earliest", "latest", a time, or offsets by partition (for one topic by its number alone).
Limit: TypeAlias = (
    Literal["earliest", "latest"] | datetime | Mapping[tuple[str, int], int] | Mapping[int, int]
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TopicBatches:
    """Records of fixed ranges of offsets: each iteration reads them again, a few megabytes at a time.

    Tools that know Arrow's C stream interface take it as a table. Records come by partition, in the order of offsets.
    """

    columns: tuple[str, ...]
    ranges: tuple[OffsetRange, ...]  #: in the order in which they are read; some may be empty
    topic_ids: Mapping[TopicPartition, bytes] = field(repr=False)
    options: ReadOptions = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return arrow_schema_of(self.columns)

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The end offset of each partition: where a later `read_topic` continues if they are its start."""
        return {tp: high for tp, _, high in self.ranges}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Read the records.

        :raises DataLossError: Records were removed meanwhile.
        :raises KafkaError: CORRUPT_MESSAGE, authorization errors and others.
        :raises BrokerConnectionError: No broker answers.
        """
        planned = [
            PlannedRange(offset_range, self.topic_ids[offset_range.tp], float("inf"))
            for offset_range in self.ranges
            if offset_range.offsets_count > 0
        ]
        return scan_records(planned, self.options, self.columns)

    def select(self, columns: Sequence[str]) -> Self:
        """Return the same records with other columns.

        :raises ValueError: There is no such column.
        """
        return replace(self, columns=_checked_columns(columns))

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of one iteration."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """Export one iteration, by Arrow's PyCapsule interface."""
        return self.reader().__arrow_c_stream__(requested_schema)


def read_topic(
    bootstrap: str,
    topic: str | Sequence[str] | None = None,
    *,
    pattern: str | None = None,
    partitions: Collection[int] | None = None,
    columns: Sequence[str] = COLUMNS,
    start: Limit = "earliest",
    end: Limit = "latest",
    isolation_level: Literal["read_uncommitted", "read_committed"] | None = None,
    properties: Mapping[str, str] | None = None,
    fail_on_data_loss: bool = True,
) -> TopicBatches:
    """Return the records of topics between two offsets of each partition, which are determined now.

    :param bootstrap: Brokers as host:port, separated by commas.
    :param topic: One or several topics.
    :param pattern: Instead of `topic`, a regular expression for whole names; internal topics are left out.
    :param partitions: Numbers of partitions of a single topic; by default all.
    :param columns: Names of columns in their order: those of `COLUMNS`, and `headers`.
    :param start: The first records. Partitions that a mapping does not name begin at their earliest offset.
    :param end: The first records not to read. Partitions that a mapping does not name end at their latest offset.
    :param isolation_level: By default the property `isolation.level`, else `read_uncommitted`.
    :param properties: Kafka's client properties for login and TLS, also `client.id` and `request.timeout.ms`.
    :param fail_on_data_loss: Raise an error if records are removed before they are read, instead of a warning.
    :raises ValueError: An argument is not valid.
    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, authorization errors and others.
    :raises BrokerConnectionError: No broker answers.
    :raises DataLossError: A partition ends before its start.
    """
    given = properties or {}
    _check_limit(start, "start")
    _check_limit(end, "end")
    selected = _checked_columns(columns)
    options = ReadOptions(
        connection=_connection(bootstrap, given),
        selection=_selection(topic, pattern, partitions),
        starting=Edge.EARLIEST,
        ending=Edge.LATEST,
        isolation=_isolation(isolation_level or given.get("isolation.level", "read_uncommitted")),
        start_may_be_latest=True,
        fail_on_data_loss=fail_on_data_loss,
        loss_option="fail_on_data_loss",
    )
    with closing(connected_logs(options)) as logs:
        topic_ids = logs.partitions(options.selection)
        _check_partitions(options.selection, topic_ids)
        starting = _offset_limit(start, "start", topic_ids, EARLIEST_MARKER)
        ending = _up_to_the_end(logs, _offset_limit(end, "end", topic_ids, LATEST_MARKER))
        options = replace(options, starting=starting, ending=ending)
        planned = plan_ranges(logs, sorted(topic_ids), options)
    ranges = tuple(OffsetRange(tp, low, max(low, high)) for tp, low, high in planned)
    return TopicBatches(selected, ranges, topic_ids, options)


def _connection(bootstrap: str, properties: Mapping[str, str]) -> ConnectionOptions:
    return ConnectionOptions(
        bootstrap,
        client_id=properties.get("client.id", "barnabas-arrow"),
        login=login_from_properties(properties),
        tls=tls_from_properties(properties),
        request_timeout_ms=number(
            "request.timeout.ms", properties.get("request.timeout.ms", "30000"), minimum=1
        ),
    )


def _selection(
    topic: str | Sequence[str] | None, pattern: str | None, partitions: Collection[int] | None
) -> TopicSelection:
    if (topic is None) == (pattern is None):
        raise ValueError("either topic or pattern is required")
    if topic is None:
        assert pattern is not None
        if partitions is not None:
            raise ValueError("partitions need a single topic, not a pattern")
        return SubscribePattern(_checked_pattern(pattern))
    topics = (topic,) if isinstance(topic, str) else tuple(dict.fromkeys(topic))
    if not topics:
        raise ValueError("topic is empty: a name is required")
    if partitions is None:
        return Subscribe(topics)
    if len(topics) > 1:
        raise ValueError(f"partitions need a single topic, not {len(topics)}")
    return Assign(frozenset(TopicPartition(topics[0], index) for index in partitions))


def _checked_pattern(pattern: str) -> str:
    try:
        topic_matcher(pattern)
    except ValueError as error:
        raise ValueError(f"pattern is '{pattern}': a regular expression is expected ({error})") from None
    return pattern


def _isolation(level: str) -> Isolation:
    if level.upper() not in Isolation.__members__:
        raise ValueError(f"isolation_level is '{level}': read_uncommitted or read_committed is expected")
    return Isolation[level.upper()]


def _checked_columns(columns: Sequence[str]) -> tuple[str, ...]:
    names = ", ".join(ARROW_TYPES)
    if isinstance(columns, str) or not columns:
        raise ValueError(f"columns is {columns!r}: a list of names is expected, of {names}")
    for name in columns:
        if name not in ARROW_TYPES:
            raise ValueError(f"there is no column '{name}'; these can be read: {names}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"columns repeats a name: {', '.join(columns)}")
    return tuple(columns)


def _check_partitions(selection: TopicSelection, found: Collection[TopicPartition]) -> None:
    missing = sorted(selection.partitions - set(found)) if isinstance(selection, Assign) else []
    if missing:
        message = f"partition {missing[0]} does not exist"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


def _check_limit(limit: object, name: str) -> None:
    if isinstance(limit, datetime) and limit.tzinfo is None:
        raise ValueError(f"{name} is {limit}, without a time zone: add tzinfo=UTC or another one")
    if limit not in ("earliest", "latest") and not isinstance(limit, datetime | Mapping):
        expected = "earliest, latest, a datetime or offsets by partition"
        raise ValueError(f"{name} is {limit!r}: {expected} is expected")


def _offset_limit(
    limit: Limit, name: str, partitions: Collection[TopicPartition], default: int
) -> OffsetRangeLimit:
    if isinstance(limit, datetime):
        return Time(_time_ms(limit))
    if isinstance(limit, Mapping):
        return SpecificOffsets({**dict.fromkeys(partitions, default), **_offsets_of(limit, name, partitions)})
    return Edge(limit)


def _up_to_the_end(logs: Logs, limit: OffsetRangeLimit) -> OffsetRangeLimit:
    """Return a limit without offsets that do not exist yet."""
    if not isinstance(limit, SpecificOffsets):
        return limit
    latest = logs.offsets(dict.fromkeys(limit.by_partition, LATEST))
    offsets = limit.by_partition.items()
    return SpecificOffsets(
        {tp: latest[tp] if offset == LATEST_MARKER else min(offset, latest[tp]) for tp, offset in offsets}
    )


def _time_ms(time: datetime) -> int:
    """Return the first millisecond that is not before a time."""
    return max(0, -((_EPOCH - time) // timedelta(milliseconds=1)))


def _offsets_of(
    limit: Mapping[Any, Any], name: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    topics = {tp.topic for tp in partitions}
    offsets = {}
    for key, offset in limit.items():
        if isinstance(key, int):
            if len(topics) > 1:
                raise ValueError(
                    f"{name} names partition {key} of {len(topics)} topics: write (topic, {key})"
                )
            key = (*topics, key)
        if tuple(key) not in partitions:
            raise ValueError(f"{name} names partition {key}, which is not read")
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"{name} is {offset!r} for partition {key}: an offset is expected")
        offsets[TopicPartition(*key)] = offset
    return offsets
