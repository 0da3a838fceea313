"""Keeps the tables of all topics: finds them, gives each its turn, and tries again what has failed.

A table that fails or is slow does not stop the others: threads take the tables that are due, one table at a time, and a
pass that takes minutes no longer counts as one of them.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from random import Random
from typing import NamedTuple
from zlib import crc32

from barnabas.base.clock import Clock
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.errors import BrokerConnectionError
from barnabas.objects.location import Location
from barnabas.reading.connection import ConnectionOptions, connected
from barnabas.registry.client import RegistryClient
from barnabas.tables.building import TableStores, build_topic_table, local_writer
from barnabas.tables.discovery import FoundTables, find_tables
from barnabas.tables.errors import ConcurrentCommit, TableError
from barnabas.tables.range_writing import RangesWriter
from barnabas.tables.settings import TableSettings
from barnabas.tables.source import TopicSource
from barnabas.tables.topic_table import TableStatistics, TopicTable
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

#: Pauses after failures in a row; the last one repeats.
_RETRY_PAUSES_MS = (1_000, 2_000, 5_000, 15_000, 60_000)
#: A pass that runs for so long no longer keeps other tables waiting.
_SLOW_PASS_MS = 300_000
#: Threads for such passes, beside those of the options.
_SLOW_PASSES_MAX = 64
#: Records are read so many times within the time after which the table must have them.
_PASSES_PER_LAG = 2
#: After a commit of another service, the pause is up to so long: one of the two is then first for good.
_CONFLICT_PAUSE_MS = 2_000
#: So many conflicts in a row are no coincidence.
_CONFLICTS_MAX = 10

_log = get_logger("barnabas.tables")


@dataclass(frozen=True)
class ServiceOptions:
    """What a service keeps, and how."""

    connection: ConnectionOptions
    stores: TableStores = field(default_factory=TableStores)
    base_location: Location | None = None
    registry_url: str | None = field(default=None, repr=False)  #: may have a password
    topics: tuple[str, ...] | None = None  #: None for all topics
    overrides: Mapping[str, str] = field(default_factory=dict)  #: configs that precede those of the topics
    share: tuple[int, int] = (0, 1)  #: keeps the topics of this number, of so many services
    threads_count: int = 2
    discovery_interval_ms: int = 10_000


class TableStatus(NamedTuple):
    """A table at a moment."""

    topic: str
    format: str
    location: str
    state: str  #: running, waiting or failed
    error: str  #: why the last pass failed; empty if it did not
    #: age of the oldest record that the table may lack, or that of the service; None if the table cannot be kept
    lag_ms: int | None
    counts: TableStatistics


@dataclass
class _Failures:
    """Failures since the last success."""

    count: int = 0
    error: str = ""

    def add(self, text: str, what: str, topic: str) -> int:
        """Note and log a failure; return the pause before it is tried again."""
        if text != self.error:
            _log.error(f"{what}; trying again", topic=topic, error=text)
        self.error = text
        self.count += 1
        return _RETRY_PAUSES_MS[min(self.count, len(_RETRY_PAUSES_MS)) - 1]

    def clear(self) -> None:
        self.count, self.error = 0, ""


@dataclass(eq=False)
class _Kept:
    """A table and its next turn."""

    table: TopicTable
    due_ms: int
    complete_ms: int  #: when the last complete pass began; at first, when the service found the table
    is_running: bool = False
    started_ms: int = 0  #: of the last pass
    is_slow: bool = False  #: whether the log says that the pass takes long
    conflicts_count: int = 0  #: since the last pass that ended otherwise
    passes: _Failures = field(default_factory=_Failures)
    maintenance: _Failures = field(default_factory=_Failures)  #: must not make the table late
    maintenance_due_ms: int = 0

    @property
    def error(self) -> str:
        return self.passes.error or self.maintenance.error


class TableService:
    """Keeps tables until it is stopped."""

    def __init__(
        self,
        options: ServiceOptions,
        clock: Clock,
        rng: Random,
        new_writer: Callable[[TableSettings], RangesWriter] | None = None,
    ) -> None:
        """:param new_writer: Returns what writes the rows of a topic; None writes them in this process.
        :raises ValueError: If the registry's URL is not valid.
        """
        self._options = options
        self._new_writer = new_writer or self._local_writer
        self._clock = clock
        self._rng = rng
        self._registry = None if options.registry_url is None else RegistryClient(options.registry_url)
        self._kept: dict[str, _Kept] = {}
        self._running: set[_Kept] = set()  #: also those that are no longer kept
        self._problems: dict[str, str] = {}
        self._sources: SimpleQueue[TopicSource] = SimpleQueue()
        self._wake = threading.Event()
        self._is_stopped = False
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Let `run` return when the passes that are running have ended; for any thread and signal handlers."""
        self._is_stopped = True
        self._wake.set()

    def run(self) -> None:
        """Keep the tables until `stop`."""
        discovery_ms = self._clock.monotonic_ms()
        client: BlockingClient | None = None
        threads_max = self._options.threads_count + _SLOW_PASSES_MAX
        with ThreadPoolExecutor(threads_max, thread_name_prefix="barnabas-tables") as threads:
            while not self._is_stopped:
                now_ms = self._clock.monotonic_ms()
                if now_ms >= discovery_ms:
                    client = self._discover(client)
                    discovery_ms = now_ms + self._options.discovery_interval_ms
                self._start_due(threads)
                self._wake.wait(self._pause_s(discovery_ms))
                self._wake.clear()
        if client is not None:
            client.close()
        self._close_sources()

    def statistics(self) -> list[TableStatus]:
        """Return the tables, and topics whose table cannot be kept."""
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            kept, problems = dict(self._kept), dict(self._problems)
        statuses = [self._status(topic, table, now_ms) for topic, table in kept.items()]
        statuses += [
            TableStatus(topic, "", "", "failed", problem, None, TableStatistics())
            for topic, problem in problems.items()
        ]
        return sorted(statuses, key=lambda status: status.topic)

    def _status(self, topic: str, kept: _Kept, now_ms: int) -> TableStatus:
        settings = kept.table.settings
        state = "failed" if kept.error else "running" if kept.is_running else "waiting"
        lag_ms = now_ms - kept.complete_ms
        return TableStatus(
            topic, settings.format.value, str(settings.location), state, kept.error, lag_ms, kept.table.counts
        )

    def _discover(self, client: BlockingClient | None) -> BlockingClient | None:
        """Follow the configs of topics; without a broker, go on with those that are known."""
        options = self._options
        try:
            client = client or connected(options.connection)
            found = find_tables(client, options.topics, options.overrides, options.base_location)
        except (KafkaError, BrokerConnectionError) as error:
            _log.warning("the topics cannot be listed; trying again", error=str(error))
            return client
        self._take(found)
        return client

    def _take(self, found: FoundTables) -> None:
        mine = {topic: settings for topic, settings in found.tables.items() if self._is_mine(topic)}
        problems = {topic: str(problem) for topic, problem in found.problems.items() if self._is_mine(topic)}
        for topic in self._kept.keys() - mine.keys():
            self._drop(topic)
        for topic, settings in mine.items():
            known = self._kept.get(topic)
            if known is None or known.table.settings != settings:  # a pass that is running ends by itself
                self._keep(topic, settings, problems)
        for topic, problem in problems.items():
            if self._problems.get(topic) != problem:
                _log.error("a table cannot be kept", topic=topic, error=problem)
        with self._lock:
            self._problems = problems

    def _is_mine(self, topic: str) -> bool:
        number, count = self._options.share
        return crc32(topic.encode()) % count == number

    def _keep(self, topic: str, settings: TableSettings, problems: dict[str, str]) -> None:
        try:
            table = build_topic_table(settings, self._options.stores, self._new_writer(settings), self._clock)
        except (TableError, ValueError) as error:
            problems[topic] = str(error)
            self._drop(topic)
            return
        _log.info(
            "keeping a table", topic=topic, format=settings.format.value, location=str(settings.location)
        )
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            self._kept[topic] = _Kept(table, now_ms, now_ms)

    def _local_writer(self, settings: TableSettings) -> RangesWriter:
        return local_writer(settings, self._options.stores, self._registry)

    def _drop(self, topic: str) -> None:
        with self._lock:
            dropped = self._kept.pop(topic, None)
        if dropped is not None:
            _log.info("a table is no longer kept", topic=topic)

    def _start_due(self, threads: ThreadPoolExecutor) -> None:
        now_ms = self._clock.monotonic_ms()
        free_count = self._free_count(now_ms)
        for kept in sorted(self._kept.values(), key=lambda kept: kept.due_ms):
            if free_count > 0 and kept.due_ms <= now_ms and not kept.is_running:
                free_count -= 1
                kept.is_running, kept.started_ms, kept.is_slow = True, now_ms, False
                with self._lock:
                    self._running.add(kept)
                threads.submit(self._pass, kept).add_done_callback(self._ended)

    def _free_count(self, now_ms: int) -> int:
        """Return how many passes may start. Slow ones do not count: their stores or catalogs may hang for good."""
        with self._lock:
            running = list(self._running)
        slow = [kept for kept in running if now_ms - kept.started_ms >= _SLOW_PASS_MS]
        for kept in slow:
            if not kept.is_slow:
                kept.is_slow = True
                _log.warning(
                    "a pass of a table takes long; another table gets its turn",
                    topic=kept.table.settings.topic,
                    location=str(kept.table.settings.location),
                )
        return self._options.threads_count - (len(running) - len(slow))

    def _pause_s(self, discovery_ms: int) -> float:
        now_ms = self._clock.monotonic_ms()
        dues_ms = [discovery_ms]
        if self._free_count(now_ms) > 0:
            dues_ms += [kept.due_ms for kept in self._kept.values() if not kept.is_running]
        return max(0, min(dues_ms) - now_ms) / 1000

    def _ended(self, future: "Future[None]") -> None:
        self._wake.set()

    def _pass(self, kept: _Kept) -> None:
        """Advance and maintain a table once, and set its next turn."""
        started_ms = self._clock.monotonic_ms()
        try:
            is_complete = self._advance(kept.table)
        except ConcurrentCommit as conflict:
            pause_ms = self._after_conflict(kept, conflict)
        except BaseException as error:  # of Kafka, the store, libraries; a panic in Rust is no Exception
            kept.conflicts_count = 0
            pause_ms = kept.passes.add(
                self._options.stores.describe(error), "a table cannot be advanced", kept.table.settings.topic
            )
        else:
            kept.passes.clear()
            kept.conflicts_count = 0
            pause_ms = 0
            if is_complete:
                kept.complete_ms = started_ms
            self._maintain(kept)
            if is_complete:
                elapsed_ms = self._clock.monotonic_ms() - started_ms
                pause_ms = max(0, kept.table.settings.target_lag_ms // _PASSES_PER_LAG - elapsed_ms)
        kept.due_ms = self._clock.monotonic_ms() + pause_ms
        kept.is_running = False
        with self._lock:
            self._running.discard(kept)

    def _after_conflict(self, kept: _Kept, conflict: ConcurrentCommit) -> int:
        """Note a conflict; return the pause before the next pass."""
        topic = kept.table.settings.topic
        kept.table.counts.conflicts_count += 1
        kept.conflicts_count += 1
        if kept.conflicts_count >= _CONFLICTS_MAX:
            what = f"a table had {_CONFLICTS_MAX} conflicts in a row"
            return kept.passes.add(self._options.stores.describe(conflict), what, topic)
        _log.debug("another service has committed first", topic=topic, error=str(conflict))
        return self._rng.randrange(_CONFLICT_PAUSE_MS)

    def _advance(self, table: TopicTable) -> bool:
        try:
            source = self._sources.get_nowait()
        except Empty:
            source = TopicSource(self._options.connection)
        try:
            return table.advance(source)
        finally:
            self._sources.put(source)

    def _maintain(self, kept: _Kept) -> None:
        """Maintain a table if it is time for that. What fails is tried again, and the table advances meanwhile."""
        if self._clock.monotonic_ms() < kept.maintenance_due_ms:
            return
        try:
            with suppress(ConcurrentCommit):  # what was not done is done later
                kept.table.maintain()
        except BaseException as error:  # as in a pass
            pause_ms = kept.maintenance.add(
                self._options.stores.describe(error),
                "a table cannot be maintained",
                kept.table.settings.topic,
            )
            kept.maintenance_due_ms = self._clock.monotonic_ms() + pause_ms
        else:
            kept.maintenance.clear()

    def _close_sources(self) -> None:
        while not self._sources.empty():
            self._sources.get_nowait().close()
