"""Counts and latencies of requests, as plain integers that only the event loop's thread changes."""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.telemetry.logs import get_logger

# fmt: off
#: Upper bounds of the latency buckets, inclusive; a last bucket holds slower requests.
LATENCY_BOUNDS_SECONDS = (
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0,
)
# fmt: on
LATENCY_BOUNDS_NS = tuple(round(bound * 1_000_000_000) for bound in LATENCY_BOUNDS_SECONDS)

_log = get_logger("barnabas.requests")


def _empty_buckets() -> list[int]:
    return [0] * (len(LATENCY_BOUNDS_NS) + 1)


@dataclass(slots=True)
class ApiStatistics:
    """The requests of one API since the start."""

    errors_count: int = 0
    total_ns: int = 0
    #: requests by latency, each counted once: by `LATENCY_BOUNDS_NS`, then the slower ones
    buckets: list[int] = field(default_factory=_empty_buckets)

    @property
    def requests_count(self) -> int:
        """Answered requests, with or without an error."""
        return sum(self.buckets)


class RequestStatistics:
    """Counts one broker's requests: `failed` or `crashed` if one goes wrong, and `finished` after each."""

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self.clock_ns = clock_ns
        self.apis: defaultdict[int, ApiStatistics] = defaultdict(ApiStatistics)  #: by api key
        self.crashes: defaultdict[str, int] = defaultdict(int)  #: by API name
        self.in_bytes = 0  #: received, of all requests
        self.out_bytes = 0  #: sent

    def finished(self, api_key: int, started_ns: int) -> int:
        """Count an answered request and its time, intended waits included; return that time in nanoseconds."""
        elapsed_ns = self.clock_ns() - started_ns
        api = self.apis[api_key]
        api.total_ns += elapsed_ns
        api.buckets[bisect_left(LATENCY_BOUNDS_NS, elapsed_ns)] += 1
        return elapsed_ns

    def failed(self, api_key: int) -> None:
        """Count a request that is answered with an error code."""
        self.apis[api_key].errors_count += 1

    def crashed(self, api_name: str, api_version: int) -> None:
        """Count and log the current exception, an internal error."""
        self.crashes[api_name] += 1
        _log.exception("a request failed with an unexpected error", api=api_name, api_version=api_version)

    def statistics(self) -> dict[str, object]:
        """Return all counts, in JSON types; `apis` by API key, `crashes` by API name."""
        return {
            "bytes_in": self.in_bytes,
            "bytes_out": self.out_bytes,
            "crashes": dict(self.crashes),
            "apis": {key: _api_statistics(api) for key, api in sorted(self.apis.items())},
        }


def _api_statistics(api: ApiStatistics) -> dict[str, object]:
    return {
        "requests": api.requests_count,
        "errors": api.errors_count,
        "total_ns": api.total_ns,
        "buckets": list(api.buckets),
    }
