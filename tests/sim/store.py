"""A metadata store that keeps every commit, while its answers, its watches and its sessions fail.

It may not answer: then a commit is lost, made, or made later. It may be out of order for all nodes, or for one that
cannot reach it. A watch may be late, or lose its history.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

from barnabas.metadata.brokers import SESSIONS
from barnabas.metadata.record_type import split_key
from barnabas.metadata.store import (
    NEVER,
    Commit,
    Conflict,
    HistoryLost,
    Item,
    OutcomeUnknown,
    StoreChange,
    StoreError,
)
from sim.loop import Node, SimulatedLoop
from support.memory_store import MemoryStore

#: Range of the delay of a commit, and of its way to a watcher.
DELAY_S = (200e-6, 5e-3)

#: How long the session of a dead broker lives, and that of one that lives but cannot renew it.
SESSION_S = (0.05, 6.0)
SILENT_SESSION_S = (4.0, 6.0)

#: How long a writer waits for an answer that does not come, and how late a commit may be made.
TIMEOUT_S = 1.0
LATE_S = 15.0

#: Share of the commits in an outage that fail at once; the others are not answered.
REFUSED_SHARE = 0.5

#: How often a watch looks whether the store can be reached again.
RECONNECT_S = 0.1


#: etcd's limit, if it is not configured.
CHANGES_MAX = 127


class SimulatedStore(MemoryStore):
    """One store for all brokers of a cluster; it is not part of any node."""

    def __init__(self, loop: SimulatedLoop, rng: random.Random, *, silent_share: float) -> None:
        """:param silent_share: Share of the commits that are not answered."""
        super().__init__(changes_max=CHANGES_MAX)
        self._loop = loop
        self._rng = rng
        self.silent_share = silent_share
        self.unanswered_count = 0
        self._sessions: dict[str, Node | None] = {}  #: key -> the node that has opened the session
        self._changed = asyncio.Event()
        self._outages: Counter[str] = Counter()  #: by the name of the node; "" for all
        self._committed_s: list[float] = []  #: time of each commit
        self.distances_s: dict[str, float] = {}  #: nodes that see each commit so much later than others
        self._watch_delays_s: defaultdict[str, float] = defaultdict(float)  #: by the name of the node
        self._lost_histories: dict[str, None] = {}  #: nodes whose watches lack the next commit
        #: called when a node requests a commit; returns how much longer it takes
        self.on_request: Callable[[tuple[StoreChange, ...]], float] = lambda changes: 0.0
        #: called after each commit
        self.on_commit: Callable[[Commit], None] = lambda commit: None

    async def load(self) -> tuple[int, list[Item]]:
        await self._delay()
        if not self.is_reachable(self._loop.node_name):
            raise StoreError("the store cannot be reached")
        return await super().load()

    async def latest_revision(self) -> int:
        await self._delay()
        if not self.is_reachable(self._loop.node_name):
            raise StoreError("the store cannot be reached")
        revision = self.revision
        await self._delay()
        return revision

    async def commit(
        self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = ""
    ) -> int:
        await asyncio.sleep(self._loop.rng.uniform(*DELAY_S) + self.on_request(changes))
        if not self.is_reachable(self._loop.node_name):
            await self._fail()
        if self._rng.random() < self.silent_share:
            self._loop.run_on(None, self._commit_or_not, self._loop.node, reads, changes, commit_id)
            self.unanswered_count += 1
            await asyncio.sleep(TIMEOUT_S)
            raise OutcomeUnknown("no answer")
        revision = self.write(reads, changes, commit_id)
        await self._delay()  # a broker that is killed here does not learn that it has committed
        return revision

    async def _fail(self) -> None:
        if self._rng.random() < REFUSED_SHARE:
            raise StoreError("the store cannot be reached")
        await asyncio.sleep(TIMEOUT_S)
        raise OutcomeUnknown("no answer")

    def _commit_or_not(
        self, node: Node | None, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str
    ) -> None:
        sessions = [
            change.key
            for change in changes
            if split_key(change.key)[0] == SESSIONS.name and change.value is not None
        ]

        def write() -> None:
            with suppress(Conflict):
                revision = self.write(reads, changes, commit_id)
                if node is not None and not node.is_alive:
                    for key in sessions:
                        self._loop.call_later(self._rng.uniform(*SESSION_S), self._end_session, key, revision)

        match self._rng.choice(["lost", "made", "late"]):
            case "made":
                write()
            case "late":
                self._loop.call_later(self._rng.uniform(0, LATE_S), write)

    def write(self, reads: Mapping[str, int], changes: tuple[StoreChange, ...], commit_id: str = "") -> int:
        revision = super().write(reads, changes, commit_id)
        self._committed_s.append(self._loop.time())
        self.on_commit(self.commits[-1])
        self._changed.set()
        self._changed = asyncio.Event()
        return revision

    # Sessions

    async def open_session(self, key: str, value: bytes) -> int:
        self._sessions[key] = self._loop.node  # also if the store makes the commit without an answer
        return await self.commit({}, (StoreChange(key, value),))

    def end_sessions(self, node: Node) -> None:
        """Let the sessions of a node that has been killed end after a while."""
        for key in self._sessions_of(node):
            del self._sessions[key]
            revision = self._revision_of(key)
            self._loop.call_later(self._rng.uniform(*SESSION_S), self._end_session, key, revision)

    def end_silent_sessions(self, node: Node, is_silent: Callable[[], bool]) -> None:
        """Let the sessions of a node that lives end after a while if it is still silent then."""

        def end(key: str, revision: int) -> None:
            if is_silent() and node.is_alive:
                self._end_session(key, revision)

        for key in self._sessions_of(node):
            self._loop.call_later(self._rng.uniform(*SILENT_SESSION_S), end, key, self._revision_of(key))

    def _sessions_of(self, node: Node) -> list[str]:
        return [key for key, owner in self._sessions.items() if owner is node]

    def _revision_of(self, key: str) -> int:
        return self.items[key].revision if key in self.items else NEVER

    def _end_session(self, key: str, revision: int) -> None:
        if not self.is_reachable(""):  # in an outage no session ends
            self._loop.call_later(RECONNECT_S, self._end_session, key, revision)
            return
        with suppress(Conflict):
            if revision != NEVER:
                self.write({key: revision}, (StoreChange(key, None),))

    # Watches

    async def watch(self, revision: int) -> AsyncIterator[Commit]:
        name = self._loop.node_name
        while True:
            while revision < self.revision:
                await self._delay()
                delay_s = self._watch_delays_s[name] + self.distances_s.get(name, 0.0)
                await asyncio.sleep(max(0.0, self._committed_s[revision] + delay_s - self._loop.time()))
                while not self.is_reachable(name) and name not in self._lost_histories:
                    await asyncio.sleep(RECONNECT_S)
                if name in self._lost_histories:
                    del self._lost_histories[name]
                    raise HistoryLost("the history begins later")
                changed = self.commits[revision]
                revision = changed.revision
                yield changed
            await self._changed.wait()

    async def _delay(self) -> None:
        await asyncio.sleep(self._loop.rng.uniform(*DELAY_S))

    # Faults

    def is_reachable(self, name: str) -> bool:
        """Whether a node can reach the store; for the empty name: whether the store works."""
        return not self._outages[""] and not self._outages[name]

    def fail(self, name: str = "") -> None:
        """Begin an outage for a node, or for all nodes."""
        self._outages[name] += 1

    def recover(self, name: str = "") -> None:
        """End an outage that has begun."""
        self._outages[name] -= 1

    def delay_watch(self, name: str, delay_s: float) -> None:
        """Delay each commit on its way to a node; 0 for the usual delay."""
        self._watch_delays_s[name] = delay_s

    def lose_history_of(self, name: str) -> None:
        """Let the watch of a node end at its next commit."""
        self._lost_histories[name] = None
