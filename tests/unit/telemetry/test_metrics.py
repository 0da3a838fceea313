import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry, exposition, request_metrics
from barnabas.telemetry.names import MetricName
from barnabas.telemetry.requests import LATENCY_BOUNDS_NS, LATENCY_BOUNDS_SECONDS, RequestStatistics

PRODUCE, FETCH, UNNAMED = 0, 1, 999
API_NAMES = {PRODUCE: "Produce", FETCH: "Fetch"}


def families_of(text):
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def samples_of(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.fixture
def registry():
    return MetricsRegistry()


@pytest.fixture
def now_ns():
    return [0]


@pytest.fixture
def statistics(now_ns):
    return RequestStatistics(lambda: now_ns[0])


def answer(statistics, now_ns, api_key, elapsed_ns):
    started_ns = statistics.clock_ns()
    now_ns[0] += elapsed_ns
    statistics.finished(api_key, started_ns)


def test_an_empty_registry_renders_nothing(registry):
    assert registry.render() == b""


def test_a_gauge_is_rendered_with_help_type_labels_and_values(registry):
    values = [({"topic": "a", "partition": "0"}, 10), ({"topic": "a", "partition": "1"}, 20.5)]
    registry.add("barnabas_log_size_bytes", "Size on disk.", "gauge", lambda: values)
    family = families_of(registry.render())["barnabas_log_size_bytes"]
    assert (family.documentation, family.type) == ("Size on disk.", "gauge")
    assert [(sample.labels, sample.value) for sample in family.samples] == values


def test_a_counter_keeps_its_suffix(registry):
    registry.add("barnabas_flushes_total", "Flushes.", "counter", lambda: [({}, 3)])
    text = registry.render()
    assert b"# TYPE barnabas_flushes_total counter\n" in text
    assert samples_of(text) == {("barnabas_flushes_total",): 3}


def test_values_are_collected_again_at_each_scrape(registry):
    count = [1]
    registry.add_metric(names.PARTITIONS, lambda: [({}, count[0])])
    assert samples_of(registry.render()) == {("barnabas_partitions",): 1}
    count[0] = 2
    assert samples_of(registry.render()) == {("barnabas_partitions",): 2}


def test_a_snapshot_is_immutable(registry):
    values = {"PLAINTEXT": 4}
    registry.add_metric(names.CONNECTIONS, lambda: (({"listener": key}, n) for key, n in values.items()))
    snapshot = registry.snapshot()
    values.clear()
    expected = {("barnabas_connections", ("listener", "PLAINTEXT")): 4}
    assert samples_of(exposition(snapshot)) == expected


def test_unusual_label_values_are_escaped(registry):
    odd = 'quote " backslash \\ newline \n umlaut ü'
    registry.add_metric(names.CONNECTIONS, lambda: [({"listener": odd}, 1)])
    assert samples_of(registry.render()) == {("barnabas_connections", ("listener", odd)): 1}


def test_large_offsets_are_exact(registry):
    offset = 2**53 - 1
    registry.add_metric(names.HIGH_WATERMARK, lambda: [({"topic": "t", "partition": "0"}, offset)])
    assert list(samples_of(registry.render()).values()) == [offset]


def test_a_failing_collector_omits_its_own_lines_and_is_logged(registry, capsys):
    def broken():
        yield {}, 1
        raise RuntimeError("not today")

    registry.add_metric(names.FLUSHES, broken)
    registry.add_metric(names.PARTITIONS, lambda: [({}, 7)])
    assert samples_of(registry.render()) == {("barnabas_partitions",): 7}
    text = capsys.readouterr().err
    assert "metric=barnabas_flushes_total" in text
    assert "RuntimeError: not today" in text


def test_metrics_collected_together_fail_together_and_may_have_no_lines(registry):
    values = {names.PARTITIONS: [({}, 3)], names.FLUSHES: [({}, 4)]}
    both = (names.PARTITIONS, names.FLUSHES)
    registry.add_together(both, lambda: dict(values))
    assert samples_of(registry.render()) == {("barnabas_partitions",): 3, ("barnabas_flushes_total",): 4}
    del values[names.FLUSHES]
    assert samples_of(registry.render()) == {("barnabas_partitions",): 3}
    values[names.PARTITIONS] = None
    assert [family.samples for family in registry.snapshot()] == [[], []]
    with pytest.raises(AssertionError):
        registry.add_metric(names.FLUSHES, list)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("kafka_partitions", "gauge"),
        ("barnabas_Partitions", "gauge"),
        ("barnabas_partitions_", "gauge"),
        ("barnabas_flushes", "counter"),
        ("barnabas_partitions_total", "gauge"),
        ("barnabas_seconds", "histogram"),
    ],
)
def test_an_invalid_name_is_a_bug(registry, name, kind):
    with pytest.raises(AssertionError):
        registry.add(name, "Help.", kind, list)


def test_a_name_is_added_once(registry):
    registry.add_metric(names.PARTITIONS, list)
    with pytest.raises(AssertionError):
        registry.add_metric(names.PARTITIONS, list)


def test_a_metric_of_any_kind_can_be_added_line_by_line(registry):
    lines = [("barnabas_x_bucket", {"le": "+Inf"}, 2), ("barnabas_x_count", {}, 2), ("barnabas_x_sum", {}, 5)]
    registry.add_samples(MetricName("barnabas_x", "X.", "histogram"), lambda: lines)
    family = families_of(registry.render())["barnabas_x"]
    assert family.type == "histogram"
    assert [(sample.name, sample.labels, sample.value) for sample in family.samples] == lines


def test_requests_errors_and_crashes_are_counted_by_api(registry, statistics, now_ns):
    request_metrics(registry, statistics, API_NAMES)
    answer(statistics, now_ns, FETCH, 10)
    answer(statistics, now_ns, FETCH, 10)
    answer(statistics, now_ns, PRODUCE, 10)
    statistics.failed(FETCH)
    statistics.crashed("Produce", 9)
    samples = samples_of(registry.render())
    assert samples["barnabas_requests_total", ("api", "Fetch")] == 2
    assert samples["barnabas_requests_total", ("api", "Produce")] == 1
    assert samples["barnabas_request_errors_total", ("api", "Fetch")] == 1
    assert samples["barnabas_request_errors_total", ("api", "Produce")] == 0
    assert samples["barnabas_request_crashes_total", ("api", "Produce")] == 1


def test_an_unknown_api_is_named_by_its_key(registry, statistics, now_ns):
    request_metrics(registry, statistics, API_NAMES)
    answer(statistics, now_ns, UNNAMED, 10)
    assert samples_of(registry.render())["barnabas_requests_total", ("api", "999")] == 1


def test_latencies_are_a_cumulated_histogram_in_seconds(registry, statistics, now_ns):
    request_metrics(registry, statistics, API_NAMES)
    for elapsed_ns in (LATENCY_BOUNDS_NS[0], LATENCY_BOUNDS_NS[2], LATENCY_BOUNDS_NS[2], 40_000_000_000):
        answer(statistics, now_ns, FETCH, elapsed_ns)
    samples = families_of(registry.render())["barnabas_request_seconds"].samples
    buckets = {float(s.labels["le"]): s.value for s in samples if s.name.endswith("_bucket")}
    middle = dict.fromkeys(LATENCY_BOUNDS_SECONDS[2:], 3)
    expected = {LATENCY_BOUNDS_SECONDS[0]: 1, LATENCY_BOUNDS_SECONDS[1]: 1, **middle, float("inf"): 4}
    assert buckets == expected
    totals = {s.name: s.value for s in samples if not s.name.endswith("_bucket")}
    assert totals == {"barnabas_request_seconds_count": 4, "barnabas_request_seconds_sum": 40.00055}
    assert all(s.labels["api"] == "Fetch" for s in samples)


def test_bytes_are_counted_in_both_directions(registry, statistics):
    request_metrics(registry, statistics, API_NAMES)
    statistics.in_bytes += 100
    statistics.out_bytes += 30
    samples = samples_of(registry.render())
    assert samples["barnabas_bytes_in_total",] == 100
    assert samples["barnabas_bytes_out_total",] == 30
