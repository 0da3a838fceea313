"""Limits failed logins."""

from collections import defaultdict, deque

from barnabas.base.clock import Clock

WINDOW_MS = 60_000
USER_FAILURES_MAX = 5
ADDRESS_FAILURES_MAX = 20
_KEYS_MAX = 10_000


class LoginAttempts:
    """Failures of the last minute by user and by address.

    An attempt counts as failed until it succeeds, so that many cannot be made at once.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
        self._refused_count = 0

    def wait_s(self, user: str, address: str) -> int:
        """Seconds until another attempt for this user or from this address is allowed; 0: now."""
        waits = [
            self._wait_ms(("user", user), USER_FAILURES_MAX),
            self._wait_ms(("address", address), ADDRESS_FAILURES_MAX),
        ]
        self._refused_count += max(waits) > 0
        return -(-max(waits) // 1000)

    def record_attempt(self, user: str, address: str) -> None:
        """Count an attempt that begins."""
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
