import json

import pytest

from barnabas.telemetry.requests import LATENCY_BOUNDS_NS, LATENCY_BOUNDS_SECONDS, RequestStatistics

PRODUCE, FETCH = 0, 1


class NanosecondClock:
    def __init__(self):
        self.now_ns = 1_000

    def __call__(self):
        return self.now_ns


@pytest.fixture
def clock():
    return NanosecondClock()


@pytest.fixture
def statistics(clock):
    return RequestStatistics(clock)


def answer(statistics, clock, api_key, elapsed_ns):
    started_ns = statistics.clock_ns()
    clock.now_ns += elapsed_ns
    statistics.finished(api_key, started_ns)


def test_a_new_broker_has_counted_nothing(statistics):
    assert statistics.statistics() == {"bytes_in": 0, "bytes_out": 0, "crashes": {}, "apis": {}}


def test_requests_are_counted_by_api_with_their_time(statistics, clock):
    answer(statistics, clock, PRODUCE, 70)
    answer(statistics, clock, PRODUCE, 30)
    answer(statistics, clock, FETCH, 5)
    produce, fetch = statistics.apis[PRODUCE], statistics.apis[FETCH]
    assert (produce.requests_count, produce.total_ns) == (2, 100)
    assert (fetch.requests_count, fetch.total_ns) == (1, 5)


@pytest.mark.parametrize("index", range(len(LATENCY_BOUNDS_NS)))
def test_a_bucket_includes_its_upper_bound(statistics, clock, index):
    answer(statistics, clock, PRODUCE, LATENCY_BOUNDS_NS[index])
    answer(statistics, clock, PRODUCE, LATENCY_BOUNDS_NS[index] + 1)
    expected = [0] * (len(LATENCY_BOUNDS_NS) + 1)
    expected[index] = expected[index + 1] = 1
    assert statistics.apis[PRODUCE].buckets == expected


def test_bounds_increase_from_microseconds_to_the_longest_wait():
    assert list(LATENCY_BOUNDS_NS) == sorted(set(LATENCY_BOUNDS_NS))
    assert (LATENCY_BOUNDS_NS[0], LATENCY_BOUNDS_NS[-1]) == (50_000, 30_000_000_000)
    assert [bound / 1e9 for bound in LATENCY_BOUNDS_NS] == list(LATENCY_BOUNDS_SECONDS)


def test_a_failed_request_is_an_error_and_still_one_request(statistics, clock):
    statistics.failed(FETCH)
    answer(statistics, clock, FETCH, 1)
    assert (statistics.apis[FETCH].errors_count, statistics.apis[FETCH].requests_count) == (1, 1)


def test_a_crash_is_counted_by_name_and_logged_with_its_traceback(statistics, capsys):
    for _ in range(2):
        try:
            raise RuntimeError("our fault")
        except RuntimeError:
            statistics.crashed("Fetch", 17)
    assert statistics.crashes == {"Fetch": 2}
    text = capsys.readouterr().err
    assert text.count("RuntimeError: our fault") == 2
    assert "api=Fetch api_version=17" in text


def test_bytes_are_counted_in_both_directions(statistics):
    statistics.in_bytes += 10
    statistics.in_bytes += 5
    statistics.out_bytes += 7
    assert (statistics.in_bytes, statistics.out_bytes) == (15, 7)


def test_statistics_are_a_copy_in_json_types(statistics, clock):
    answer(statistics, clock, FETCH, 60_000)
    statistics.failed(FETCH)
    statistics.out_bytes += 3
    before = statistics.statistics()
    answer(statistics, clock, FETCH, 1)
    buckets = [0, 1] + [0] * (len(LATENCY_BOUNDS_NS) - 1)
    fetch = {"requests": 1, "errors": 1, "total_ns": 60_000, "buckets": buckets}
    assert before == {"bytes_in": 0, "bytes_out": 3, "crashes": {}, "apis": {FETCH: fetch}}
    assert json.loads(json.dumps(before))["apis"] == {str(FETCH): fetch}


def test_the_machines_clock_is_the_default():
    statistics = RequestStatistics()
    statistics.finished(PRODUCE, statistics.clock_ns())
    assert 0 <= statistics.apis[PRODUCE].total_ns < 30_000_000_000
