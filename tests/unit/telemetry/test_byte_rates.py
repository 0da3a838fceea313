import asyncio

from barnabas.base.clock import ManualClock
from barnabas.telemetry.byte_rates import SAMPLE_INTERVAL_MS, SAMPLES_COUNT, UNKNOWN_RATE, ByteRates
from barnabas.telemetry.requests import RequestStatistics


def test_a_rate_is_not_known_just_after_the_start() -> None:
    clock = ManualClock()
    rates = ByteRates(RequestStatistics(), clock.monotonic_ms)
    assert rates.per_second() == (UNKNOWN_RATE, UNKNOWN_RATE)
    clock.advance(1_000)
    assert rates.per_second() == (0, 0)


def test_a_rate_is_the_mean_of_the_last_half_minute() -> None:
    clock, statistics = ManualClock(), RequestStatistics()
    rates = ByteRates(statistics, clock.monotonic_ms)
    statistics.in_bytes += 1_000_000
    clock.advance(2_000)
    assert rates.per_second() == (500_000, 0)
    for _ in range(SAMPLES_COUNT):
        asyncio.run(rates.sample())
        clock.advance(SAMPLE_INTERVAL_MS)
        statistics.in_bytes += 5_000
        statistics.out_bytes += 10_000
    assert rates.per_second() == (1_000, 2_000)
