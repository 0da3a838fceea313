"""How often somebody may fail to log in before waiting."""

from collections import defaultdict, deque

from barnabas.base.clock import Clock

WINDOW_MS = 60_000
USER_FAILURES_MAX = 5
ADDRESS_FAILURES_MAX = 20
_KEYS_MAX = 10_000


class LoginAttempts:
    """Failures of the last minute by user and by address.

    A try counts as one that has failed until it is known to have succeeded: else many could be made at once.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
        self._refused_count = 0

    def wait_s(self, user: str, address: str) -> int:
        """For how many seconds nobody may try this user, or from this address; 0: now."""
        waits = [
            self._wait_ms(("user", user), USER_FAILURES_MAX),
            self._wait_ms(("address", address), ADDRESS_FAILURES_MAX),
        ]
        self._refused_count += max(waits) > 0
        return -(-max(waits) // 1000)

    def record_attempt(self, user: str, address: str) -> None:
        """Count a try that begins."""
        if len(self._failures) >= _KEYS_MAX:
            self._remove_old()
        now_ms = self._clock.monotonic_ms()
        self._failures["user", user].append(now_ms)
        self._failures["address", address].append(now_ms)

    def succeeded(self, user: str, address: str) -> None:
        """Remove the attempt after a successful login."""
        for key in (("user", user), ("address", address)):
            times = self._failures[key]
            if times:
                times.pop()
            if not times:
                del self._failures[key]

    def statistics(self) -> dict[str, int]:
        """How many are counted, and how many tries were refused."""
        return {"counted": len(self._failures), "refused": self._refused_count}

    def _wait_ms(self, key: tuple[str, str], failures_max: int) -> int:
        times = self._failures.get(key)
        if times is None:
            return 0
        now_ms = self._clock.monotonic_ms()
        while times and now_ms - times[0] >= WINDOW_MS:
            times.popleft()
        if len(times) < failures_max:
            return 0
        return times[-failures_max] + WINDOW_MS - now_ms

    def _remove_old(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for key in [
            key for key, times in self._failures.items() if not times or now_ms - times[-1] >= WINDOW_MS
        ]:
            del self._failures[key]
