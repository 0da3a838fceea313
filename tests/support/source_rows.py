"""Rows of a topic as Spark's source and as a confluent-kafka consumer return them, and topics to compare."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame

from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.source.batch_reader import BatchReader

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
WAIT_S = 20.0


class SourceRow(NamedTuple):
    """A record; times in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None


def source_options(bootstrap: str, topic: str, **given: str) -> dict[str, str]:
    """Return options for one topic; names have underscores for dots."""
    return {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "fetchOffset.retryIntervalMs": "50",
        **{name.replace("_", "."): value for name, value in given.items()},
    }


def produce_damaged(broker: EmbeddedBroker, topic: str) -> None:
    """Append a record to partition 0 with one byte changed, so that its CRC is wrong."""
    broker.produce(topic, "intact", partition=0)
    [path] = (broker.directory / f"{topic}-0").glob("*.log")
    with path.open("r+b") as file:
        data = file.read()
        file.seek(data.index(b"intact"))
        file.write(b"I")


def read_batches(
    options: Mapping[str, str], columns: tuple[str, ...] = COLUMNS, tasks: list[Any] | None = None
) -> Iterator[pa.RecordBatch]:
    """Return the Arrow batches of the tasks, without Spark."""
    reader = BatchReader(options, columns)
    for task in reader.partitions() if tasks is None else tasks:
        yield from reader.read(task)


def read_rows(options: Mapping[str, str], tasks: list[Any] | None = None) -> list[SourceRow]:
    """Return the same as rows, by partition and offset."""
    return sorted(rows_of(read_batches(options, COLUMNS, tasks)))


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[SourceRow]:
    """Convert Arrow batches to rows, in their order."""
    return [_arrow_row(row) for batch in batches for row in batch.to_pylist()]


def _arrow_row(row: dict[str, Any]) -> SourceRow:
    headers = row["headers"]
    pairs = None if headers is None else tuple((each["key"], each["value"]) for each in headers)
    timestamp_ms = pa.scalar(row["timestamp"], pa.timestamp("ms", "UTC")).value
    return SourceRow(
        row["topic"],
        row["partition"],
        row["offset"],
        timestamp_ms,
        row["timestampType"],
        row["key"],
        row["value"],
        pairs,
    )


def frame_rows(frame: DataFrame) -> list[SourceRow]:
    """Return the rows of a frame of the source, by partition and offset."""
    headers = "headers" if "headers" in frame.columns else "NULL AS headers"
    found = frame.selectExpr(
        "topic", "partition", "offset", "unix_millis(timestamp)", "timestampType", "key", "value", headers
    ).collect()
    return sorted(
        SourceRow(*row[:5], _bytes(row[5]), _bytes(row[6]), _pairs(row[7]))  # type: ignore[call-arg]
        for row in map(tuple, found)
    )


def _bytes(data: bytearray | bytes | None) -> bytes | None:
    return None if data is None else bytes(data)


def _pairs(headers: Any) -> tuple[tuple[str, bytes | None], ...] | None:
    return None if headers is None else tuple((each[0], _bytes(each[1])) for each in headers)


def consumed_rows(bootstrap: str, topic: str, *, committed: bool = False) -> list[SourceRow]:
    """Return all records that a confluent-kafka consumer reads, by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "compare",
            "fetch.wait.max.ms": 20,  # else it waits half a second for more
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    with closing(consumer):
        indexes = consumer.list_topics(topic, WAIT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in indexes])
        rows, open_count = [], len(indexes)
        while open_count:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"the consumer waits for {open_count} partitions of {topic}"
            if message.error():
                assert message.error().name() == "_PARTITION_EOF", message.error()
                open_count -= 1
            else:
                rows.append(_consumed(message))
    return sorted(rows)


def _consumed(message: Any) -> SourceRow:
    kind, timestamp_ms = message.timestamp()
    headers = message.headers()
    return SourceRow(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp_ms,
        kind - 1,
        message.key(),
        message.value(),
        tuple(headers) if headers else None,
    )


def producer(bootstrap: str, **settings: Any) -> Producer:
    """Return a confluent-kafka producer; settings have underscores for dots."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, **named})


def fill(
    bootstrap: str, topic: str, count: int, partitions: int = 1, *, keyed: bool = False, **settings: Any
) -> None:
    """Write records of every kind: keys, values and headers that are present, empty or null; unordered timestamps.

    With `keyed` no key is null, as compacted topics require.
    """
    writer = producer(bootstrap, **settings)
    errors: list[str] = []
    for number in range(count):
        fields = record(number)
        if keyed:
            fields["key"] = fields["key"] or b"key-%d" % (number % 7)
        writer.produce(
            topic,
            partition=number % partitions,
            on_delivery=lambda error, _: errors.append(str(error)) if error else None,
            **fields,
        )
        writer.poll(0)
    assert writer.flush(WAIT_S) == 0
    assert not errors, errors[0]


def record(number: int) -> dict[str, Any]:
    """Return the fields of a record, different for each number."""
    headers: Any = [("trace", str(number).encode()), ("empty", b""), ("none", None), ("trace", b"again")]
    return {
        "key": (None, b"", b"key-%d" % (number % 7))[number % 3],
        "value": (b"value %d " % number * (number % 40), b"", None)[0 if number % 11 else 1 + number % 2],
        "headers": headers[: number % 5] or None,
        "timestamp": 1_700_000_000_000 + (number * 7_919) % 100_000,
    }
