"""Limits of new connections per second (KIP-612): connections beyond them wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

#: After so much time without connections, as many are accepted at once as the limit allows for this time.
BURST_MS = 1_000

#: The longest wait. A connection that would have to wait for longer is closed: its client would have given up.
WAIT_MS_MAX = 10_000


class Admission(NamedTuple):
    """When to serve or to refuse a new connection."""

    delay_ms: int
    is_refused: bool  #: after the delay it is reset: clients take that for a busy broker, and try again


@dataclass(frozen=True, slots=True)
class CreationRates:
    """The limits, in connections per second; None for no limit."""

    of_broker: int | None = None
    of_listeners: Mapping[str, int] = field(default_factory=dict)
    #: the listener of other brokers: the limit of the broker is not for it
    protected_listener: str | None = None


class ConnectionPacer:
    """Spreads new connections over time, in the order in which they come."""

    def __init__(self) -> None:
        #: "" for the broker, or a listener -> when the next connection would be due at an even pace
        self._due_ms: dict[str, float] = {}
        self.delayed_count = 0
        self.refused_count = 0

    def admit(self, rates: CreationRates, listener: str, now_ms: int) -> Admission:
        """Count a connection, unless it would have to wait for longer than `WAIT_MS_MAX` and is refused."""
        limits = {listener: rates.of_listeners.get(listener)}
        if listener != rates.protected_listener:
            limits[""] = rates.of_broker
        due_ms = {
            owner: max(self._due_ms.get(owner, 0.0), now_ms)
            for owner, limit in limits.items()
            if limit is not None
        }
        wait_ms = max((round(due - now_ms) - BURST_MS for due in due_ms.values()), default=0)
        if wait_ms > WAIT_MS_MAX:
            self.refused_count += 1
            return Admission(0, is_refused=True)
        for owner, due in due_ms.items():
            self._due_ms[owner] = due + 1000 / max(limits[owner] or 0, 1)
        self.delayed_count += wait_ms > 0
        return Admission(max(wait_ms, 0), is_refused=False)

    def statistics(self) -> dict[str, int]:
        return {"delayed_count": self.delayed_count, "refused_count": self.refused_count}
