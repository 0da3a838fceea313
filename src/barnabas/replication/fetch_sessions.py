"""Incremental fetch sessions (KIP-227): a client names its partitions once, then only changes.

A session stores for each partition the last request parameters and the last values sent. An incremental response
leaves out the partitions without news.
"""

import random
from collections import OrderedDict
from dataclasses import dataclass

from barnabas.base.clock import Clock
from barnabas.metadata.topics import NAME_LENGTH_MAX
from barnabas.replication.fetch_targets import FetchData, FetchTarget, Key
from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.errors import ErrorCode, KafkaError

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0  #: a full fetch that requests a new session
FINAL_EPOCH = -1  #: a full fetch without a session; closes the session that it names

#: A session unused for this long may be evicted by any other, as in Apache Kafka.
EVICTION_AGE_MS = 120_000

#: Largest number of partitions in a session: as many as one request can name, because each fetch checks all of them.
SESSION_TARGETS_COUNT_MAX = 100_000

#: Largest number of partitions in all sessions, at about half a kilobyte each; beyond, fetches get no session.
TARGETS_COUNT_MAX = 1_000_000


def _may_exist(key: Key) -> bool:
    """Whether a topic can have this name. Others, which may have any length, are not stored."""
    topic = key[0]
    return isinstance(topic, bytes) or (len(topic) <= NAME_LENGTH_MAX and topic.isascii())


def next_epoch(epoch: int) -> int:
    """Return the epoch of a session's next request."""
    return 1 if epoch == 2**31 - 1 else epoch + 1


class FetchSession:
    """The partitions that one client reads, in the order in which they are read."""

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1  #: the epoch that the next incremental request must have
        self.used_ms = now_ms
        self.targets: OrderedDict[Key, FetchTarget] = OrderedDict()

    def apply(self, request: FetchData) -> bool:
        """Add, change and remove partitions as an incremental request says; return whether all added ones may exist."""
        all_may_exist = True
        for key, target in request.requested:
            cached = self.targets.get(key)
            if cached is None:
                self.targets[key] = target
                all_may_exist = all_may_exist and _may_exist(key)
            else:
                cached.update(target)
        for key in request.forgotten:
            self.targets.pop(key, None)
        return all_may_exist

    def served(self, key: Key) -> None:
        """Move a partition that returned data to the end, so that the others are read first next time."""
        if key in self.targets:  # another request of the session may have removed it meanwhile
            self.targets.move_to_end(key)


@dataclass(slots=True)
class FetchContext:
    """One fetch: the partitions to read, and its session, if any."""

    targets: list[tuple[Key, FetchTarget]]
    session: FetchSession | None = None
    is_incremental: bool = False

    @property
    def session_id(self) -> int:
        """The session id for the response."""
        return self.session.session_id if self.session else INVALID_SESSION_ID


class FetchSessionCache:
    """All sessions of a broker; their number is limited."""

    def __init__(self, slots_count: int, clock: Clock, rng: random.Random) -> None:
        self._slots_count = slots_count
        self._clock = clock
        self._rng = rng
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  #: least recently used first
        self.evictions_count = 0

    def begin(self, request: FetchData, *, uses_topic_ids: bool) -> FetchContext:
        """Find or create the session of a request.

        A session that has grown too large is closed, and so is one to which a name is added that no topic can have.

        :raises KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
            FETCH_SESSION_TOPIC_ID_ERROR; the client then starts a full fetch.
        """
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._begin_full(request, uses_topic_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            message = f"Fetch session {request.session_id} not found."
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, message)
        if session.epoch != request.session_epoch:
            message = f"Fetch session {session.session_id} expects epoch {session.epoch}, not {request.session_epoch}."
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, message)
        if session.uses_topic_ids != uses_topic_ids:
            message = f"Fetch session {session.session_id} mixes topic names and topic ids."
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, message)
        count_before = len(session.targets)
        all_may_exist = session.apply(request)
        has_grown = len(session.targets) > count_before
        if len(session.targets) > SESSION_TARGETS_COUNT_MAX or (has_grown and self._is_overfull()):
            del self._sessions[session.session_id]
            limits = (
                f"at most {SESSION_TARGETS_COUNT_MAX} partitions each, {TARGETS_COUNT_MAX} in all sessions"
            )
            message = f"Fetch session {session.session_id} has grown too large and was closed: {limits}."
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, message)
        if not session.targets:
            # An empty session would save nothing. As in Kafka, partitions named and forgotten at once are read.
            del self._sessions[session.session_id]
            return FetchContext(list(OrderedDict(request.requested).items()))
        if not all_may_exist:
            del self._sessions[session.session_id]
            return FetchContext(list(session.targets.items()))
        session.epoch = next_epoch(session.epoch)
        session.used_ms = self._clock.monotonic_ms()
        self._sessions.move_to_end(session.session_id)
        return FetchContext(list(session.targets.items()), session, is_incremental=True)

    def session_id_when_throttled(self, fetch: FetchContext) -> int:
        """Return the session id for a throttled, empty response; close a session that this request created (KIP-219).

        Its client starts again later, because it has not received the partitions' data.
        """
        if fetch.is_incremental:
            return fetch.session_id
        self._sessions.pop(fetch.session_id, None)
        return INVALID_SESSION_ID

    def get(self, session_id: int) -> FetchSession | None:
        """Return a session, or None if it does not exist."""
        return self._sessions.get(session_id)

    def _begin_full(self, request: FetchData, uses_topic_ids: bool) -> FetchContext:
        if request.session_id != INVALID_SESSION_ID:
            self._sessions.pop(request.session_id, None)
        targets = OrderedDict(request.requested)  # if a partition is named twice, the last one counts
        if request.session_epoch == FINAL_EPOCH or self._is_overfull(len(targets)) or not self._make_room():
            return FetchContext(list(targets.items()))
        if not uses_topic_ids and not all(map(_may_exist, targets)):
            return FetchContext(list(targets.items()))
        session = FetchSession(self._new_id(), uses_topic_ids, self._clock.monotonic_ms())
        session.targets = targets
        self._sessions[session.session_id] = session
        return FetchContext(list(session.targets.items()), session)

    def _is_overfull(self, added_count: int = 0) -> bool:
        return self._targets_count + added_count > TARGETS_COUNT_MAX

    @property
    def _targets_count(self) -> int:
        return sum(len(session.targets) for session in self._sessions.values())

    def _make_room(self) -> bool:
        """Return whether there is room for one more session, evicting the least recently used one if it is old."""
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
            session_id = self._rng.randrange(1, 2**31)
            if session_id not in self._sessions:
                return session_id

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.FETCH_SESSIONS, lambda: [({}, len(self._sessions))])

    def statistics(self) -> dict[str, int]:
        """Return the number of sessions, of their partitions, and of evictions."""
        return {
            "sessions_count": len(self._sessions),
            "partitions_count": self._targets_count,
            "evictions_count": self.evictions_count,
        }
