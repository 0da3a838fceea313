"""A rate over the last windows, and the time until it is at its limit again (Kafka's `Rate` and `QuotaUtils`)."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

#: The largest value of the protocol's field.
WAIT_MS_MAX = 2**31 - 1


def whole_ms(wait_ms: float) -> int:
    """Return a throttle time for a response, rounded as Java does."""
    return int(min(wait_ms, WAIT_MS_MAX - 1) + 0.5)


@dataclass(frozen=True, slots=True)
class Windows:
    """The number and length of the windows of a rate (`quota.window.*`)."""

    count: int
    size_ms: int

    @property
    def shortest_ms(self) -> int:
        """The shortest time over which a rate is measured; windows before the first count as empty."""
        return max((self.count - 1) * self.size_ms, 1)


class Sample(NamedTuple):
    """The sum of a window that is over."""

    started_ms: int
    last_ms: int  #: time of the last record
    value: float


class Rate:
    """The recent use of one entity, and its limit per second.

    Times are of a monotonic clock, in milliseconds.
    """

    __slots__ = (
        "_free",
        "_last_ms",
        "_limit",
        "_older",
        "_older_value",
        "_started_ms",
        "_window_ms",
        "_windows",
        "free_value",
        "value",
    )

    def __init__(self, windows: Windows, limit: float, now_ms: int) -> None:
        self._windows = windows
        self._window_ms = windows.size_ms
        self._older: deque[Sample] = deque(maxlen=windows.count)
        self._older_value = 0.0  #: sum of `_older`
        self.value = 0.0  #: sum of the current window
        #: up to this sum in the current window there is no throttling
        self.free_value = 0.0
        self._started_ms = self._last_ms = now_ms
        self.limit = limit

    @property
    def limit(self) -> float:
        """The limit per second."""
        return self._limit

    @limit.setter
    def limit(self, limit: float) -> None:
        self._limit = limit
        self._free = (
            limit * self._windows.shortest_ms / 1000
        )  #: this much never exceeds the limit, whenever it is used
        self.free_value = self._free - self._older_value

    @property
    def last_ms(self) -> int:
        """Time of the last record."""
        return self._last_ms

    @property
    def burst(self) -> float:
        """The amount that an idle entity may use immediately."""
        return self._free

    def record(self, value: float, now_ms: int) -> int:
        """Record `value`; return the throttle time in ms until the rate is at its limit again, 0 if it is not above."""
        if now_ms - self._started_ms >= self._window_ms:
            self._advance(now_ms)
        self._last_ms = now_ms
        self.value = value = self.value + value
        if value <= self.free_value:
            return 0
        return self._throttle_ms(now_ms)

    def measure(self, now_ms: int) -> float:
        """Return the rate per second."""
        return self._total(now_ms) / self._span_ms(now_ms) * 1000

    def _advance(self, now_ms: int) -> None:
        """Begin a new window and drop the oldest one beyond the number of windows."""
        self._older.append(Sample(self._started_ms, self._last_ms, self.value))
        self._sum_up()
        self._started_ms, self.value = now_ms, 0.0

    def _sum_up(self) -> None:
        self._older_value = sum(sample.value for sample in self._older)
        self.free_value = self._free - self._older_value

    def _total(self, now_ms: int) -> float:
        """Return the sum of the windows that still count; drops the others."""
        expired_ms = now_ms - self._windows.count * self._windows.size_ms
        while self._older and self._older[0].last_ms <= expired_ms:
            self._older.popleft()
        self._sum_up()
        return self._older_value + (self.value if self._last_ms > expired_ms else 0.0)

    def _span_ms(self, now_ms: int) -> int:
        """Return the time over which the total is spread; call it after the total."""
        elapsed_ms = now_ms - (self._older[0].started_ms if self._older else self._started_ms)
        missing_count = self._windows.count - 1 - elapsed_ms // self._windows.size_ms
        return max(elapsed_ms + max(missing_count, 0) * self._windows.size_ms, 1)

    def _throttle_ms(self, now_ms: int) -> int:
        total = self._total(now_ms)
        span_ms = self._span_ms(now_ms)
        rate = total / span_ms * 1000
        if rate <= self._limit:
            return 0
        return whole_ms((rate - self._limit) / self._limit * span_ms)
