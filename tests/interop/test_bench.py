"""The benchmark harness: measurements from Linux, alternation, output; one quick real measurement."""

import mmap
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from bench import load
from bench.measures import MEASURES, QUICK, Measure, Metric
from bench.process import anonymous_bytes, cpu_s, parse_anonymous_bytes, parse_cpu_ticks
from bench.report import Result, document, tables
from bench.run import Contestant, compare, turns
from bench.tls.listeners import SCRAM, TLS, Site, address
from bench.tls.measures import QUICK as QUICK_TLS
from bench.tls.measures import measures
from bench.used import used_by
from bench.warm_memory import AHEAD_BYTES, warm_memory
from interop.brokers import Broker
from interop.targets import RUNNING_ONE

from support.waiting import until

SLOWER = Metric("time of a thing", "ms", 0.5)
FASTER = Metric("things done", "/s", 3.0, more_is_better=True)


def test_cpu_time_is_parsed_after_a_name_with_parentheses() -> None:
    stat = "42 (a (bad) name) S 1 42 42 0 -1 4194304 100 0 0 0 17 25 3 4 20 0 9 0 100 200 300"
    assert parse_cpu_ticks(stat) == 17 + 25


def test_cpu_time_of_a_process_grows_as_it_works() -> None:
    before_s = cpu_s(os.getpid())
    while cpu_s(os.getpid()) - before_s < 0.02:
        sum(range(10_000))
    assert cpu_s(os.getpid()) > before_s


def test_anonymous_memory_is_parsed_in_bytes() -> None:
    assert parse_anonymous_bytes("Rss:  900 kB\nAnonymous:    12 kB\nLazyFree:  0 kB\n") == 12_288
    assert anonymous_bytes(os.getpid()) > 1 << 20
    with pytest.raises(ValueError, match="no Anonymous line"):
        parse_anonymous_bytes("Rss:  900 kB\n")


def test_a_commands_use_is_its_own() -> None:
    own = bytearray(b"1") * (256 << 20)
    assert used_by(["true"]).memory_mib < len(own) >> 21
    failed = used_by(
        [sys.executable, "-c", "import time; own = b'1' * (256 << 20); time.sleep(0.1); exit(3)"]
    )
    assert failed.exit_code == 3
    assert 256 < failed.memory_mib < 400
    assert failed.time_s > 0.1, "it slept so long"


def test_touched_memory_is_released_as_others_use_some() -> None:
    pool_bytes = 2 * AHEAD_BYTES
    used: list[bytearray] = []

    def is_given_up_as_more_is_used(pool: int) -> bool:
        """Memory that other processes release meanwhile is used up as well."""
        used.append(bytearray(AHEAD_BYTES))
        used[-1][:: mmap.PAGESIZE] = b"1" * (AHEAD_BYTES // mmap.PAGESIZE)
        return os.fstat(pool).st_size == 0

    with warm_memory(pool_bytes) as pool:
        until(lambda: is_given_up_as_more_is_used(pool))


def test_the_ratio_is_that_of_the_medians() -> None:
    assert Result(SLOWER, baseline=[1.0, 100.0, 4.0], barnabas=[2.0, 1.0, 50.0]).ratio == 0.5


@pytest.mark.parametrize(
    ("metric", "ratio", "reached"),
    [(SLOWER, 0.5, True), (SLOWER, 0.51, False), (FASTER, 3.0, True), (FASTER, 2.9, False)],
)
def test_a_target_is_a_limit_in_the_metrics_direction(metric: Metric, ratio: float, reached: bool) -> None:
    assert metric.is_reached(ratio) is reached


def test_the_table_has_medians_ranges_ratio_and_target() -> None:
    printed = tables([Result(SLOWER, [4.0, 2.0, 3.0], [1.5, 1.0, 2.0])])
    assert printed.splitlines()[-1] == (
        "| time of a thing | ms | 3 (2-4) | 1.5 (1-2) | **0.50** | ≤ 0.5 | yes |"
    )


def test_the_document_has_the_number_of_rounds_and_the_machine() -> None:
    text = document(
        [Result(FASTER, [1_000.0], [5_000.0])],
        5,
        {"kernel": "Linux 6"},
        {"always new": 1.5},
        "| 2.5 |",
        "| 0.1 |",
    )
    assert "Then there are 5 rounds" in " ".join(text.split())
    assert "| always new | 1.50 | 2 | yes |" in text
    assert "- kernel: Linux 6" in text
    assert "| things done | /s | 1,000 | 5,000 | **5.00** | ≥ 3 | yes |" in text


def test_the_order_of_brokers_alternates() -> None:
    first, second = contestants(lambda home, _settings: pytest.fail(f"started on {home}"))
    assert turns([first, second], 0) == [first, second]
    assert turns([first, second], 1) == [second, first]


def contestants(start: Callable[[Path, Mapping[str, str]], Broker]) -> list[Contestant]:
    return [Contestant("kafka", start), Contestant("barnabas", start)]


class FakeBroker:
    """Counts calls."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.is_running = True

    def stop(self) -> None:
        self.is_running = False


@pytest.mark.parametrize(("fresh", "started"), [(False, 2), (True, 6)])
def test_brokers_run_for_a_measurement_or_for_a_round(fresh: bool, started: int) -> None:
    brokers: list[FakeBroker] = []

    def start(home: Path, _settings: Mapping[str, str]) -> FakeBroker:
        brokers.append(FakeBroker(home))
        return brokers[-1]

    measure = Measure(
        "homes",
        lambda broker, _size: {"value": float(broker.is_running)},
        {"value": SLOWER},
        fresh_broker_each_round=fresh,
    )
    (result,) = compare(measure, contestants(start), QUICK, rounds=3)
    assert (result.baseline, result.barnabas) == ([1.0] * 3, [1.0] * 3)
    assert len(brokers) == started
    assert not any(broker.is_running or broker.home.exists() for broker in brokers)


@pytest.fixture(scope="module")
def loaded(target: str) -> Iterator[Broker]:
    """Run a broker of its own, because the load would disturb other tests; a raw load knows one broker alone."""
    with RUNNING_ONE[target]() as running:
        yield running


@pytest.mark.parametrize("name", ["requests", "everyday", "latency", "fetch", "create", "metadata", "plan"])
def test_a_raw_load_measures_a_broker(loaded: Broker, name: str) -> None:
    measure = next(each for each in MEASURES if each.name == name)
    measure.prepare(loaded, QUICK)
    measured = measure.run(loaded, QUICK)
    assert set(measured) == set(measure.metrics)
    assert all(value > 0 for value in measured.values())


def test_a_raw_load_reports_an_error(loaded: Broker) -> None:
    with pytest.raises(load.LoadFailed, match="Produce answered error 3"):
        load.raw("produce", loaded.bootstrap, topic="no-such-topic", seconds=0.1)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def secured(target: str, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = site.start(target)(tmp_path_factory.mktemp("secured"), {})
    try:
        yield broker
    finally:
        broker.stop()


@pytest.mark.parametrize("name", ["batches", "requests", "fetch", "latency", "connections"])
def test_a_load_connects_in_every_way(secured: Broker, site: Site, name: str) -> None:
    measure = next(each for each in measures(site) if each.name == name)
    measure.prepare(secured, QUICK_TLS)
    measured = measure.run(secured, QUICK_TLS)
    assert set(measured) == set(measure.metrics)
    assert all(value > 0 for value in measured.values())


def test_a_load_reports_that_it_cannot_log_in_or_does_not_trust_the_broker(
    secured: Broker, site: Site, tmp_path: Path
) -> None:
    with pytest.raises(load.LoadFailed, match="SaslAuthenticate answered error 58"):
        load.raw("connect", address(secured, SCRAM), **site.flags(SCRAM) | {"password": "wrong"})
    Site(tmp_path)
    with pytest.raises(load.LoadFailed, match="certificate signed by unknown authority"):
        load.raw("connect", address(secured, TLS), authority=str(tmp_path / "authority.pem"))
