"""A token bucket (Kafka's `TokenBucket`, KIP-599)."""

from barnabas.quotas.rate import Windows, whole_ms


class TokenBucket:
    """The tokens of one entity. The balance may become negative.

    Times are of a monotonic clock, in milliseconds.
    """

    __slots__ = ("_tokens", "_updated_ms", "_windows", "limit")

    def __init__(self, windows: Windows, limit: float, now_ms: int) -> None:
        self._windows = windows
        self.limit = limit  #: tokens per second
        self._tokens = self.burst
        self._updated_ms = now_ms

    @property
    def burst(self) -> float:
        """The capacity."""
        return self.limit * self._windows.count * self._windows.size_ms / 1000

    @property
    def last_ms(self) -> int:
        """Time of the last call."""
        return self._updated_ms

    def tokens(self, now_ms: int) -> float:
        """Return the balance; negative after more was taken than there was."""
        filled = self._tokens + self.limit * (now_ms - self._updated_ms) / 1000
        self._tokens = min(self.burst, filled)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, count: float, now_ms: int) -> None:
        """Take tokens; the balance may become negative."""
        self._tokens = min(self.burst, self.tokens(now_ms) - count)

    def wait_ms(self, now_ms: int, tokens_taken: float = 0) -> int:
        """Time until the balance is 0 again, if `tokens_taken` tokens were taken as well."""
        lacking = tokens_taken - self.tokens(now_ms)
        return whole_ms(lacking / self.limit * 1000) if lacking > 0 else 0
