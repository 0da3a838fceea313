"""Incremental fetch sessions (KIP-227): a client names its partitions once, then only what changes.

A session remembers what was asked for and last told of each partition. An incremental response leaves out the
partitions of which there is nothing new.
"""

import random
from collections import OrderedDict
from dataclasses import dataclass

from barnabas.base.clock import Clock
from barnabas.replication.fetch_data import FetchData, FetchTarget, Key
from barnabas.wire.errors import ErrorCode, KafkaError

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0  #: a full fetch that asks for a new session
FINAL_EPOCH = -1  #: a full fetch outside any session; ends the one that is named

#: A session unused for this long may be evicted in favour of any other, as in Apache Kafka.
EVICTION_AGE_MS = 120_000

#: Partitions of one session at most, as many as one request can name: all of them are looked at on each fetch.
SESSION_TARGETS_COUNT_MAX = 100_000

#: Partitions of all sessions at most, each of some hundred bytes: who asks for more is served without a session.
TARGETS_COUNT_MAX = 1_000_000


class FetchSession:
    """What one client reads, in the order in which it is served."""

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1  #: the epoch that the next incremental request must carry
        self.used_ms = now_ms
        self.targets: OrderedDict[Key, FetchTarget] = OrderedDict()

    def apply(self, request: FetchData) -> None:
        """Add, change and forget partitions as an incremental request says."""
        for key, target in request.named:
            known = self.targets.get(key)
            if known is None:
                self.targets[key] = target
            else:
                known.update(target)
        for key in request.forgotten:
            self.targets.pop(key, None)

    def served(self, key: Key) -> None:
        """Put a partition that got data behind the others: next time they come first."""
        if key in self.targets:  # another request of the session may have forgotten it meanwhile
            self.targets.move_to_end(key)


@dataclass(slots=True)
class FetchContext:
    """One fetch: what to read, and in which session, if any."""

    targets: list[tuple[Key, FetchTarget]]
    session: FetchSession | None = None
    is_incremental: bool = False

    @property
    def session_id(self) -> int:
        """What the response says of the session."""
        return self.session.session_id if self.session else INVALID_SESSION_ID


class FetchSessionCache:
    """All sessions of a broker, bounded in number."""

    def __init__(self, slots_count: int, clock: Clock, dice: random.Random) -> None:
        self._slots_count = slots_count
        self._clock = clock
        self._dice = dice
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  #: longest unused first
        self.evictions_count = 0

    def begin(self, request: FetchData, *, uses_topic_ids: bool) -> FetchContext:
        """Find or make the session of a request; one that has grown too large ends.

        :raises KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
            FETCH_SESSION_TOPIC_ID_ERROR; the client then starts a full fetch.
        """
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._begin_full(request, uses_topic_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            message = f"There is no fetch session {request.session_id}."
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, message)
        if session.epoch != request.session_epoch:
            asked = request.session_epoch
            message = f"Fetch session {session.session_id} expects epoch {session.epoch}, not {asked}."
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, message)
        if session.uses_topic_ids != uses_topic_ids:
            message = f"Fetch session {session.session_id} mixes topic names and topic ids."
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, message)
        count_before = len(session.targets)
        session.apply(request)
        has_grown = len(session.targets) > count_before
        if len(session.targets) > SESSION_TARGETS_COUNT_MAX or (has_grown and self._is_overfull()):
            del self._sessions[session.session_id]
            what = f"{SESSION_TARGETS_COUNT_MAX} partitions are the most, {TARGETS_COUNT_MAX} of all sessions"
            message = f"Fetch session {session.session_id} has grown too large and is ended: {what}."
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, message)
        if not session.targets:
            del self._sessions[session.session_id]  # nothing is left to remember
            return FetchContext([])
        session.epoch = 1 if session.epoch == 2**31 - 1 else session.epoch + 1
        session.used_ms = self._clock.monotonic_ms()
        self._sessions.move_to_end(session.session_id)
        return FetchContext(list(session.targets.items()), session, is_incremental=True)

    def session_id_when_throttled(self, fetch: FetchContext) -> int:
        """Return the session id for a throttled, empty response (KIP-219). A session that this request created ends.

        Its client begins anew when it may: what was not told is as if it had not been.
        """
        if fetch.is_incremental:
            return fetch.session_id
        self._sessions.pop(fetch.session_id, None)
        return INVALID_SESSION_ID

    def get(self, session_id: int) -> FetchSession | None:
        """A session as it stands; None when there is none with this id."""
        return self._sessions.get(session_id)

    def _begin_full(self, request: FetchData, uses_topic_ids: bool) -> FetchContext:
        if request.session_id != INVALID_SESSION_ID:
            self._sessions.pop(request.session_id, None)
        targets = OrderedDict(request.named)  # of a partition that is named twice, the last one counts
        if request.session_epoch == FINAL_EPOCH or self._is_overfull(len(targets)) or not self._make_room():
            return FetchContext(list(targets.items()))
        session = FetchSession(self._new_id(), uses_topic_ids, self._clock.monotonic_ms())
        session.targets = targets
        self._sessions[session.session_id] = session
        return FetchContext(list(session.targets.items()), session)

    def _is_overfull(self, more_count: int = 0) -> bool:
        return self._targets_count + more_count > TARGETS_COUNT_MAX

    @property
    def _targets_count(self) -> int:
        return sum(len(session.targets) for session in self._sessions.values())

    def _make_room(self) -> bool:
        """Whether there is a place for one more session, evicting the longest unused one if it is old."""
        if len(self._sessions) < self._slots_count:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if self._clock.monotonic_ms() - oldest.used_ms < EVICTION_AGE_MS:
            return False
        del self._sessions[oldest.session_id]
        self.evictions_count += 1
        return True

    def _new_id(self) -> int:
        while True:
            session_id = self._dice.randrange(1, 2**31)
            if session_id not in self._sessions:
                return session_id

    def statistics(self) -> dict[str, int]:
        """How many sessions there are, what they hold, and how many had to go."""
        return {
            "sessions_count": len(self._sessions),
            "partitions_count": self._targets_count,
            "evictions_count": self.evictions_count,
        }
