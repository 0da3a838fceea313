"""A service whose tables fail in unusual ways."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from barnabas.base.clock import ManualClock
from barnabas.objects.location import Location
from barnabas.reading.connection import ConnectionOptions
from barnabas.tables.building import TableStores, local_writer
from barnabas.tables.errors import ConcurrentCommit
from barnabas.tables.range_writing import RangesWriter, TopicRange, WriteContext, WrittenRanges
from barnabas.tables.service import _SLOW_PASS_MS, ServiceOptions, TableService, TableStatus
from barnabas.tables.settings import TableFormat, TableSettings
from barnabas.tables.source import TopicSource
from barnabas.tables.topic_table import TopicTable
from barnabas.testing import EmbeddedBroker
from support.tables import settings_of, table_rows
from support.waiting import until


class Panic(BaseException):
    """As a library in Rust raises it."""


class Panicking(RangesWriter):
    def write(
        self, context: WriteContext, source: TopicSource, ranges: Sequence[TopicRange]
    ) -> WrittenRanges:
        raise Panic("index out of bounds")


class Hanging(RangesWriter):
    """Does not return before the end of its context."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._released = threading.Event()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._released.set()

    def write(
        self, context: WriteContext, source: TopicSource, ranges: Sequence[TopicRange]
    ) -> WrittenRanges:
        self.calls.append(context.settings.topic)
        self._released.wait()
        return WrittenRanges()


@contextmanager
def service(
    broker: EmbeddedBroker,
    location: Location,
    topics: Sequence[str],
    clock: ManualClock,
    new_writer: Callable[[TableSettings], RangesWriter],
) -> Iterator[TableService]:
    options = ServiceOptions(
        ConnectionOptions(broker.bootstrap),
        base_location=location,
        topics=tuple(topics),
        overrides={"barnabas.table.format": "delta", "barnabas.table.target.lag.ms": "100"},
        threads_count=2,
        discovery_interval_ms=10,
    )
    running = TableService(options, clock, Random(1), new_writer)
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        yield running
    finally:
        running.stop()
        thread.join()


def errors(running: TableService) -> dict[str, str]:
    return {status.topic: status.error for status in running.statistics()}


def test_a_panic_of_a_library_is_a_failure_like_others(
    broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    broker.produce(topic, "0", partition=0)
    clock = ManualClock()
    with service(broker, tmp_path, [topic], clock, lambda _: Panicking()) as running:
        until(lambda: errors(running) == {topic: "Panic: index out of bounds"})
        clock.advance(5_000)
        [status] = running.statistics()
        assert status.lag_ms == 5_000, "a table that was never complete is late, too"


def test_a_table_whose_maintenance_fails_still_advances(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a bucket in which the service may write, but not delete."""

    def refuse(table: TopicTable) -> None:
        raise OSError("AccessDenied")

    monkeypatch.setattr(TopicTable, "maintain", refuse)
    broker.produce(topic, "0", partition=0)
    clock = ManualClock()
    with service(
        broker, tmp_path, [topic], clock, lambda kept: local_writer(kept, TableStores(), None)
    ) as running:
        until(lambda: errors(running) == {topic: "OSError: AccessDenied"})
        broker.produce(topic, "1", partition=0)
        clock.advance(100)
        until(lambda: [status.counts.rows_count for status in running.statistics()] == [2])
        assert running.statistics()[0].state == "failed"


def test_many_conflicts_in_a_row_are_a_failure_until_a_pass_ends(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conflict(table: TopicTable, source: TopicSource) -> bool:
        raise ConcurrentCommit("the catalog refuses it")

    clock = ManualClock()

    def later() -> list[TableStatus]:
        clock.advance(1_000)
        return running.statistics()

    with monkeypatch.context() as patch:
        patch.setattr(TopicTable, "advance", conflict)
        with service(broker, tmp_path, [topic], clock, lambda _: Hanging()) as running:
            until(lambda: any(status.counts.conflicts_count > 1 for status in later()))
            assert errors(running) == {topic: ""}
            until(lambda: any(status.state == "failed" for status in later()))
            assert errors(running) == {topic: "ConcurrentCommit: the catalog refuses it"}
            patch.setattr(TopicTable, "advance", lambda table, source: True)
            until(lambda: any(status.state == "waiting" for status in later()))


def test_tables_that_hang_do_not_keep_all_threads(
    broker: EmbeddedBroker, new_name: Callable[[], str], tmp_path: Path
) -> None:
    topics = [new_name() for _ in range(3)]
    for topic in topics:
        broker.create_topic(topic, 1)
        broker.produce(topic, "0", partition=0)
    hanging, clock = Hanging(), ManualClock()

    def new_writer(settings: TableSettings) -> RangesWriter:
        return hanging if settings.topic != topics[2] else local_writer(settings, TableStores(), None)

    good = settings_of(topics[2], TableFormat.DELTA, tmp_path / topics[2])
    with service(broker, tmp_path, topics, clock, new_writer) as running, hanging:
        until(lambda: len(hanging.calls) == 2)
        clock.advance(_SLOW_PASS_MS)
        until(lambda: any(status.counts.rows_count for status in running.statistics()))
    assert [row["value"] for row in table_rows(good)] == [b"0"]


def test_passes_that_have_not_begun_are_left_out_at_the_end(
    broker: EmbeddedBroker, new_name: Callable[[], str], tmp_path: Path
) -> None:
    topics = [new_name() for _ in range(6)]
    for topic in topics:
        broker.create_topic(topic, 1)
        broker.produce(topic, "0", partition=0)
    hanging = Hanging()
    with service(broker, tmp_path, topics, ManualClock(), lambda _: hanging) as running, hanging:
        until(lambda: len(hanging.calls) == 2)
        running.stop()
    assert len(hanging.calls) == 2
