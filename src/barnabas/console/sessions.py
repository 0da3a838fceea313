"""Who is logged in: sessions by the random id in a cookie, kept in this process alone."""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.console.access import Access

_NOTICES_MAX = 5


class Notice(NamedTuple):
    """A sentence that the next page shows once; `kind` is good or bad."""

    kind: str
    text: str


@dataclass
class ConsoleSession:
    """One person's visit. The id is a secret, as is the token that forms must bring back."""

    key: str = field(repr=False)
    csrf: str = field(repr=False)
    access: Access
    opened_ms: int
    used_ms: int
    own_access: bool  #: whether the connections are this session's alone, so that they end with it
    notices: list[Notice] = field(default_factory=list)

    def note(self, kind: str, text: str) -> None:
        """Have the next page say `text`."""
        self.notices = [*self.notices, Notice(kind, text)][-_NOTICES_MAX:]

    def take_notices(self) -> list[Notice]:
        """What is to be said, once."""
        notices, self.notices = self.notices, []
        return notices


class Sessions:
    """All sessions of a console. What ends is handed to whoever calls, for its connections to be closed."""

    def __init__(
        self, clock: Clock, token: Callable[[], str], *, idle_ms: int, lifetime_ms: int, sessions_max: int
    ) -> None:
        """`token` gives a random text that nobody can guess."""
        self._clock = clock
        self._token = token
        self._idle_ms = idle_ms
        self._lifetime_ms = lifetime_ms
        self._sessions_max = sessions_max
        self._sessions: dict[str, ConsoleSession] = {}
        self._opened_count = 0
        self._expired_count = 0

    def open(self, access: Access, *, own_access: bool) -> ConsoleSession:
        """A new session."""
        now_ms = self._clock.monotonic_ms()
        session = ConsoleSession(self._token(), self._token(), access, now_ms, now_ms, own_access)
        self._sessions[session.key] = session
        self._opened_count += 1
        return session

    def find(self, key: str | None, *, use: bool = True) -> ConsoleSession | None:
        """The session with that id, unless it has expired; with `use` it stays for longer."""
        session = self._sessions.get(key or "")
        if session is None or self._is_over(session):
            return None
        if use:
            session.used_ms = self._clock.monotonic_ms()
        return session

    def holds(self, session: ConsoleSession) -> bool:
        """Whether it has not been forgotten."""
        return self._sessions.get(session.key) is session

    def close(self, session: ConsoleSession) -> None:
        """Forget a session."""
        self._sessions.pop(session.key, None)

    def take_expired(self) -> list[ConsoleSession]:
        """Forget what is over and, where there are too many, the longest unused of who has the most; gives those."""
        over: list[ConsoleSession] = []
        left: defaultdict[str, deque[ConsoleSession]] = defaultdict(deque)
        for session in sorted(self._sessions.values(), key=lambda each: each.used_ms):
            (over if self._is_over(session) else left[session.access.principal]).append(session)
        too_many = range(len(self._sessions) - len(over) - self._sessions_max)
        over.extend(max(left.values(), key=len).popleft() for _ in too_many)
        for session in over:
            self.close(session)
        self._expired_count += len(over)
        return over

    def take_all(self) -> list[ConsoleSession]:
        """Forget every session; gives them."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        return sessions

    def statistics(self) -> dict[str, int]:
        """How many sessions there are and were."""
        return {
            "open": len(self._sessions),
            "opened": self._opened_count,
            "expired": self._expired_count,
        }

    def _is_over(self, session: ConsoleSession) -> bool:
        now_ms = self._clock.monotonic_ms()
        idle = now_ms - session.used_ms >= self._idle_ms
        return idle or now_ms - session.opened_ms >= self._lifetime_ms
