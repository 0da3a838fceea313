"""Time enters the broker here and nowhere else."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one for people and files, one for measuring."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch; may jump."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary point; never goes back."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds since an arbitrary point; never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch; may jump."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary point; never goes back."""
        return time.monotonic_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        """Nanoseconds since an arbitrary point; never goes back."""
        return time.monotonic_ns()


class ManualClock:
    """A clock for tests and the simulator: time moves only when told to."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as last set."""
        return self.now_ms

    def monotonic_ms(self) -> int:
        """The same count as `wall_ms`: one hand drives both."""
        return self.now_ms

    def monotonic_ns(self) -> int:
        """The same count in nanoseconds."""
        return self.now_ms * 1_000_000

    def advance(self, delta_ms: int) -> None:
        """Move time forward by `delta_ms` milliseconds."""
        assert delta_ms >= 0, delta_ms
        self.now_ms += delta_ms
