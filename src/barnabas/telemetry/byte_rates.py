"""The present rates of received and sent bytes, from the counters of requests."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from barnabas.telemetry.requests import RequestStatistics

SAMPLE_INTERVAL_MS = 5_000

#: A rate is the mean of the last 30 to 35 seconds, and of less after a start.
SAMPLES_COUNT = 7

#: A shorter time does not make a rate.
MEASURED_MS_MIN = 1_000

UNKNOWN_RATE = -1


class _Sample(NamedTuple):
    time_ms: int
    in_bytes: int
    out_bytes: int


class ByteRates:
    """Calculates the rates of one broker; `sample` must be called every `SAMPLE_INTERVAL_MS`."""

    def __init__(self, statistics: RequestStatistics, monotonic_ms: Callable[[], int]) -> None:
        self._statistics = statistics
        self._monotonic_ms = monotonic_ms
        self._samples = deque([self._now()], maxlen=SAMPLES_COUNT)

    async def sample(self) -> None:
        self._samples.append(self._now())

    def per_second(self) -> tuple[int, int]:
        """Return received and sent bytes per second; UNKNOWN_RATE just after the start."""
        now, first = self._now(), self._samples[0]
        elapsed_ms = now.time_ms - first.time_ms
        if elapsed_ms < MEASURED_MS_MIN:
            return UNKNOWN_RATE, UNKNOWN_RATE
        in_bytes, out_bytes = now.in_bytes - first.in_bytes, now.out_bytes - first.out_bytes
        return in_bytes * 1000 // elapsed_ms, out_bytes * 1000 // elapsed_ms

    def _now(self) -> _Sample:
        return _Sample(self._monotonic_ms(), self._statistics.in_bytes, self._statistics.out_bytes)
