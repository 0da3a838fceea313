import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.quotas.rate import Rate, Windows

#: Kafka's defaults: eleven windows of one second.
WINDOWS = Windows(11, 1000)


def test_use_up_to_the_limit_is_not_throttled() -> None:
    rate = Rate(WINDOWS, 100.0, 0)
    assert [rate.record(45, now_ms) for now_ms in range(0, 20_000, 500)] == [0] * 40
    assert rate.measure(19_999) == pytest.approx(90, rel=0.1)


def test_a_burst_is_spread_over_the_windows_before_it() -> None:
    rate = Rate(WINDOWS, 100.0, 0)
    assert rate.record(1000, 0) == 0  # 1000 over ten seconds
    assert rate.record(500, 0) == 5000  # 150 per second: half too much for ten seconds


def test_samples_older_than_all_windows_do_not_count() -> None:
    rate = Rate(WINDOWS, 100.0, 0)
    assert rate.record(5000, 0) > 0
    assert rate.record(0, 10_999) > 0
    assert rate.record(0, 11_000) == 0
    assert rate.measure(11_000) == 0


def test_a_window_counts_until_its_last_sample_is_too_old() -> None:
    rate = Rate(WINDOWS, 100.0, 0)
    rate.record(1, 0)
    rate.record(4999, 900)
    assert rate.measure(11_500) == pytest.approx(5000 / 11.5)
    assert rate.measure(11_900) == 0


def test_use_that_is_taken_back_does_not_count() -> None:
    rate = Rate(WINDOWS, 100.0, 0)
    assert rate.record(5000, 0) > 0
    rate.record(-5000, 0)
    assert rate.record(1000, 0) == 0


def test_a_new_limit_applies_to_past_use() -> None:
    rate = Rate(WINDOWS, 1e9, 0)
    rate.record(5000, 0)
    rate.limit = 100.0
    assert rate.record(0, 0) == 40_000
    rate.limit = 1000.0
    assert rate.record(0, 0) == 0


def test_a_single_window_is_measured_from_its_start() -> None:
    rate = Rate(Windows(1, 1000), 100.0, 0)
    assert rate.record(10, 0) > 0  # 10 within a millisecond
    assert rate.record(0, 100) == 0


@pytest.mark.parametrize("limit", [5e-324, 1e-300, 1e-9])
def test_a_tiny_limit_has_a_finite_throttle_time(limit: float) -> None:
    assert 0 < Rate(WINDOWS, limit, 0).record(1e12, 0) <= 2**31 - 1


class Model:
    """The same with a ring of samples, which are reset when they are too old, as in Kafka."""

    def __init__(self, windows: Windows, limit: float) -> None:
        self.windows, self.limit = windows, limit
        self.ring = [[0, 0, 0.0]]  # started at, last recorded at, value
        self.current = 0

    def record(self, value: float, now_ms: int) -> int:
        count, size_ms = self.windows.count, self.windows.size_ms
        if now_ms - self.ring[self.current][0] >= size_ms:
            self.current = (self.current + 1) % (count + 1)
            fresh = [now_ms, now_ms, 0.0]
            self.ring[self.current : self.current + 1] = [fresh]
        self.ring[self.current][2] += value
        self.ring[self.current][1] = now_ms
        for sample in self.ring:
            if now_ms - sample[1] >= count * size_ms:
                sample[:] = [now_ms, now_ms, 0.0]
        elapsed_ms = now_ms - min(began_ms for began_ms, _, _ in self.ring)
        span_ms = elapsed_ms + max(count - 1 - elapsed_ms // size_ms, 0) * size_ms
        span_ms = max(span_ms, 1)
        rate = sum(value for _, _, value in self.ring) / (span_ms / 1000)
        return int((rate - self.limit) / self.limit * span_ms + 0.5) if rate > self.limit else 0


@given(
    steps=st.lists(
        st.tuples(st.sampled_from([0, 1, 300, 999, 1000, 3000, 12_000]), st.integers(0, 700)), max_size=60
    ),
    count=st.integers(1, 12),
)
def test_throttle_times_equal_those_of_kafkas_samples(steps: list[tuple[int, int]], count: int) -> None:
    windows = Windows(count, 1000)
    rate, model, now_ms = Rate(windows, 100.0, 0), Model(windows, 100.0), 0
    for pause_ms, size in steps:
        now_ms += pause_ms
        assert rate.record(size, now_ms) == pytest.approx(model.record(size, now_ms), abs=1)
