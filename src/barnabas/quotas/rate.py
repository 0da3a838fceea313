"""A rate over the last few windows, and how long to wait for it to come down (Kafka's `Rate`, `QuotaUtils`)."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

#: The protocol has room for no more.
WAIT_MS_MAX = 2**31 - 1


def whole_ms(wait_ms: float) -> int:
    """A wait as answers tell it, rounded as Java does."""
    return int(min(wait_ms, WAIT_MS_MAX - 1) + 0.5)


@dataclass(frozen=True, slots=True)
class Windows:
    """How rates are measured: over this many windows, each so long (`quota.window.*`)."""

    count: int
    size_ms: int

    @property
    def shortest_ms(self) -> int:
        """The shortest time over which a rate is measured: windows that have not been yet count as empty."""
        return max((self.count - 1) * self.size_ms, 1)


class Sample(NamedTuple):
    """What was recorded in a window that is over."""

    started_ms: int
    last_ms: int  #: when something was recorded last
    value: float


class Rate:
    """What one entity has taken of one thing lately, against its limit per second.

    Times are of a clock that never goes back, in milliseconds.
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
        self._older_value = 0.0  #: of all in `_older`
        self.value = 0.0  #: in the window that is running
        #: up to so much in the window that is running nobody waits, whenever it comes
        self.free_value = 0.0
        self._started_ms = self._last_ms = now_ms
        self.limit = limit

    @property
    def limit(self) -> float:
        """What may be taken per second."""
        return self._limit

    @limit.setter
    def limit(self, limit: float) -> None:
        self._limit = limit
        self._free = limit * self._windows.shortest_ms / 1000  #: as much cannot be too much, whenever it came
        self.free_value = self._free - self._older_value

    @property
    def last_ms(self) -> int:
        """When something was recorded last."""
        return self._last_ms

    @property
    def burst(self) -> float:
        """What may be taken at once by who has taken nothing lately."""
        return self._free

    def record(self, value: float, now_ms: int) -> int:
        """Take `value`; how long to wait, in ms, until the rate is at its limit again, 0 while it is not above."""
        if now_ms - self._started_ms >= self._window_ms:
            self._advance(now_ms)
        self._last_ms = now_ms
        self.value = value = self.value + value
        if value <= self.free_value:
            return 0
        return self._throttle_ms(now_ms)

    def measure(self, now_ms: int) -> float:
        """The rate per second."""
        return self._total(now_ms) / self._span_ms(now_ms) * 1000

    def _advance(self, now_ms: int) -> None:
        """Begin a new window; of as many as are kept the oldest goes."""
        self._older.append(Sample(self._started_ms, self._last_ms, self.value))
        self._sum_up()
        self._started_ms, self.value = now_ms, 0.0

    def _sum_up(self) -> None:
        self._older_value = sum(sample.value for sample in self._older)
        self.free_value = self._free - self._older_value

    def _total(self, now_ms: int) -> float:
        """What the windows that still count hold; the others are let go."""
        expired_ms = now_ms - self._windows.count * self._windows.size_ms
        while self._older and self._older[0].last_ms <= expired_ms:
            self._older.popleft()
        self._sum_up()
        return self._older_value + (self.value if self._last_ms > expired_ms else 0.0)

    def _span_ms(self, now_ms: int) -> int:
        """The time that the total is spread over; to be asked for after it."""
        elapsed_ms = now_ms - (self._older[0].started_ms if self._older else self._started_ms)
        missing_count = self._windows.count - 1 - elapsed_ms // self._windows.size_ms
        return max(elapsed_ms + max(missing_count, 0) * self._windows.size_ms, 1)

    def _throttle_ms(self, now_ms: int, more: float = 0.0) -> int:
        total = self._total(now_ms) + more
        span_ms = self._span_ms(now_ms)
        rate = total / span_ms * 1000
        if rate <= self._limit:
            return 0
        return whole_ms((rate - self._limit) / self._limit * span_ms)
