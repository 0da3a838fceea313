"""Topics that are rekeyed on any broker: their records, and checks of the result."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Protocol

from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import BlockingClient
from barnabas.client.producer.partitioner import murmur2
from support.source_rows import SourceRow, consumed_rows, producer

BEGIN_MS = 1_600_000_000_000  # older than the retention
KEYS_COUNT = 13


class Reached(Protocol):
    """A broker, by its address and a client."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def client(self) -> BlockingClient: ...


def write(broker: Reached, topic: str, partitions: int, numbers: range) -> None:
    """Write records with the partitioning of Java's clients; some without a key, some in an aborted transaction."""
    writer = producer(broker.bootstrap, transactional_id=f"writer-{topic}")
    writer.init_transactions(20)
    for outcome in ("abort", "commit"):
        writer.begin_transaction()
        for number in numbers:
            key = None if number % 10 == 9 else b"key %d" % (number % KEYS_COUNT)
            tp = number % partitions if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions
            writer.produce(
                topic,
                None if number % 17 == 16 else b"%s %d" % (outcome.encode(), number),
                key,
                tp,
                timestamp=BEGIN_MS + number * 1_000,
                headers=[("number", b"%d" % number), ("none", None)] if number % 3 else None,
            )
        writer.flush(20)
        getattr(writer, f"{outcome}_transaction")(20)


def grow(broker: Reached, topic: str, count: int) -> None:
    assert broker.client.admin.create_partitions({topic: count}) == {topic: None}


def contents(rows: list[SourceRow]) -> list[tuple[object, ...]]:
    return sorted((repr(row.key), repr(row.value), row.timestamp, repr(row.headers)) for row in rows)


def check_copy(broker: Reached, source: str, target: str, count: int) -> None:
    """Check that the target has the source's records, each key in its partition, ordered by time."""
    rows = consumed_rows(broker.bootstrap, target, committed=True)
    assert contents(rows) == contents(consumed_rows(broker.bootstrap, source, committed=True))
    times: defaultdict[bytes, list[int]] = defaultdict(list)
    for row in rows:
        if row.key is not None:
            assert row.partition == (murmur2(row.key) & 0x7FFFFFFF) % count
            times[row.key].append(row.timestamp)
    for each in times.values():
        assert each == sorted(each)


def consume(broker: Reached, group: str, topic: str) -> list[SourceRow]:
    """Return the records that a consumer of the group reads from its committed offsets to the end."""
    offsets = broker.client.groups.offsets(group)
    starts = {tp.partition: each.offset for tp, each in offsets.items() if tp.topic == topic}  # type: ignore[union-attr]
    return [
        row
        for row in consumed_rows(broker.bootstrap, topic, committed=True)
        if row.offset >= starts[row.partition]
    ]


def commit(broker: Reached, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    partitions = {TopicPartition(topic, partition): offset for partition, offset in offsets.items()}
    assert set(broker.client.groups.commit_offsets(group, partitions).values()) == {None}


def unread(broker: Reached, topic: str, offsets: Mapping[int, int]) -> list[SourceRow]:
    rows = consumed_rows(broker.bootstrap, topic, committed=True)
    return [row for row in rows if row.offset >= offsets.get(row.partition, 0)]
