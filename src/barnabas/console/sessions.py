"""Sessions by the random id in a cookie, kept in this process only."""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.console.access import Access

_NOTICES_MAX = 5


class Notice(NamedTuple):
    """A message that the next page shows once; `kind` is good or bad."""

    kind: str
    text: str


@dataclass
class ConsoleSession:
    """A person's session. Its id is secret, and so is the token that forms must carry."""

    key: str = field(repr=False)
    csrf: str = field(repr=False)
    access: Access
    opened_ms: int
    used_ms: int
    own_access: bool  #: whether the connections belong to this session alone and end with it
    notices: list[Notice] = field(default_factory=list)

    def note(self, kind: str, text: str) -> None:
        """Show `text` on the next page."""
        self.notices = [*self.notices, Notice(kind, text)][-_NOTICES_MAX:]

    def take_notices(self) -> list[Notice]:
        """Return and clear the notices."""
        notices, self.notices = self.notices, []
        return notices


class Sessions:
    """All sessions of a console. Ended sessions are returned to the caller, which closes their connections."""

    def __init__(
        self, clock: Clock, token: Callable[[], str], *, idle_ms: int, lifetime_ms: int, sessions_max: int
    ) -> None:
        """:param token: Returns a random text that cannot be guessed."""
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
        """The session with that id, unless it has expired; `use` extends it."""
        session = self._sessions.get(key or "")
        if session is None or self._is_over(session):
            return None
        if use:
            session.used_ms = self._clock.monotonic_ms()
        return session

    def holds(self, session: ConsoleSession) -> bool:
        """Whether the session still exists."""
        return self._sessions.get(session.key) is session

    def close(self, session: ConsoleSession) -> None:
        self._sessions.pop(session.key, None)

    def take_expired(self) -> list[ConsoleSession]:
        """Remove and return expired sessions and, if there are too many, the least recently used of the principal
        with most sessions.
        """
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
        """Remove and return all sessions."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        return sessions

    def statistics(self) -> dict[str, int]:
        return {
            "open": len(self._sessions),
            "opened": self._opened_count,
            "expired": self._expired_count,
        }

    def _is_over(self, session: ConsoleSession) -> bool:
        now_ms = self._clock.monotonic_ms()
        idle = now_ms - session.used_ms >= self._idle_ms
        return idle or now_ms - session.opened_ms >= self._lifetime_ms
