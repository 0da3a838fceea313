"""Limits what clients cause to be written, such as log lines: in each minute, by the client that caused it."""

from collections import Counter
from typing import NamedTuple

from barnabas.base.clock import Clock

#: The length of a window.
WINDOW_MS = 60_000
#: Principals and addresses counted per window; all others are counted together.
SOURCES_MAX = 2_000
#: Sources in the summary of a window; the last entry is for all others.
SUMMARY_COUNT_MAX = 20

#: The principal in the last entry of a summary, which has no address.
OTHER_PRINCIPALS = "(others)"


class SourceLimits(NamedTuple):
    """Entries per window: of one principal at one address, of one address, in all."""

    principal: int
    address: int
    total: int


class _Source(NamedTuple):
    """The source of an entry. An empty principal means an address, an empty address all others."""

    principal: str
    address: str


class LeftOut(NamedTuple):
    """How many entries of a principal at an address were left out."""

    principal: str
    address: str
    entries_count: int


_OTHERS = _Source("", "")


class SourceLimiter:
    """Admits entries by principal and address, and counts what it leaves out."""

    def __init__(self, clock: Clock, limits: SourceLimits) -> None:
        self._clock = clock
        self._limits = limits
        self._window_began_ms = clock.monotonic_ms()
        self._admitted_count = 0
        self._counts: Counter[_Source] = Counter()
        self._left_out: Counter[_Source] = Counter()

    def admits(self, principal: str, address: str) -> bool:
        """Whether an entry may be written; counts it in any case. Call `end_window` first."""
        own, at_address = self._counted(_Source(principal, address)), self._counted(_Source("", address))
        if (
            self._counts[own] >= self._limits.principal
            or self._counts[at_address] >= self._limits.address
            or self._admitted_count >= self._limits.total
        ):
            self._left_out[own] += 1
            return False
        self._counts[own] += 1
        if at_address is not own:
            self._counts[at_address] += 1
        self._admitted_count += 1
        return True

    def end_window(self) -> list[LeftOut]:
        """Begin a new window if the present one is over; return what it left out, the most first."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._window_began_ms < WINDOW_MS:
            return []
        left_out = self._left_out
        self._window_began_ms = now_ms
        self._admitted_count = 0
        self._counts, self._left_out = Counter(), Counter()
        commonest = [pair for pair in left_out.most_common(SUMMARY_COUNT_MAX) if pair[0] != _OTHERS]
        summary = [LeftOut(*source, count) for source, count in commonest]
        others_count = left_out.total() - sum(count for _, count in commonest)
        return [*summary, LeftOut(OTHER_PRINCIPALS, "", others_count)] if others_count else summary

    def _counted(self, source: _Source) -> _Source:
        """Return the source that an entry counts for; once there are too many, new ones share one."""
        if source not in self._counts:
            if len(self._counts) >= SOURCES_MAX:
                return _OTHERS
            self._counts[source] = 0  # a source without any entry counts, too: names can be invented
        return source

    def statistics(self) -> dict[str, int]:
        return {
            "written": self._admitted_count,
            "left_out": self._left_out.total(),
            "sources": len(self._counts.keys() | self._left_out.keys()),
        }
