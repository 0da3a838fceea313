"""A clock of the simulation, with a wall clock of its own for each node."""

from sim.loop import SimulatedLoop

WALL_START_MS = 1_700_000_000_000


class SimulatedClock:
    """Follows virtual time; the wall clock can jump."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.skew_ms = 0

    def wall_ms(self) -> int:
        return WALL_START_MS + int(self._loop.time() * 1_000) + self.skew_ms

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1_000)

    def monotonic_ns(self) -> int:
        return int(self._loop.time() * 1_000_000_000)
