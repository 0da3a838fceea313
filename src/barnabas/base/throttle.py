"""A limit on bytes per second for background work."""

#: The longest wait before the limit is read again, because it may have changed.
WAIT_MS_MAX = 1000


class Throttle:
    """Counts bytes that were used ahead of time; a higher limit applies to them immediately, too."""

    def __init__(self) -> None:
        self._debt_bytes = 0.0
        self._counted_ms = 0

    def used(self, size_bytes: int, bytes_per_second: float, now_ms: int) -> None:
        """Count used bytes, at a time of the monotonic clock."""
        self._pay(bytes_per_second, now_ms)
        self._debt_bytes += size_bytes

    def wait_ms(self, bytes_per_second: float, now_ms: int) -> int:
        """Return the time to wait before using more, at most `WAIT_MS_MAX`; then call it again."""
        self._pay(bytes_per_second, now_ms)
        if bytes_per_second == 0:
            return WAIT_MS_MAX
        return min(int(self._debt_bytes * 1000 / bytes_per_second), WAIT_MS_MAX)

    def _pay(self, bytes_per_second: float, now_ms: int) -> None:
        passed_ms = now_ms - self._counted_ms
        self._debt_bytes = max(0.0, self._debt_bytes - passed_ms * bytes_per_second / 1000)
        self._counted_ms = now_ms
