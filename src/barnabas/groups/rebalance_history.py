"""What caused the last rebalances of each group, and what they assigned. Kept in memory only."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

#: The type of groups of the consumer protocol (KIP-848).
CONSUMER = "consumer"

#: Rebalances that are kept for each group.
REBALANCES_MAX = 100

#: Approximate size of the history of all groups; beyond it, the oldest rebalances are removed.
SIZE_BYTES_MAX = 16 << 20

#: Limits for one rebalance: events, members with their assignments, and partitions in these assignments.
EVENTS_MAX, MEMBERS_MAX, PARTITIONS_MAX = 100, 100, 10_000

#: Reasons come from clients (KIP-800).
_REASON_LENGTH_MAX = 255

#: Approximate sizes of what is kept, in bytes.
_REBALANCE_BYTES, _EVENT_BYTES, _MEMBER_BYTES, _TOPIC_BYTES, _PARTITION_BYTES = 400, 400, 300, 150, 8

#: Topic name -> partition indexes.
AssignedTopics: TypeAlias = Mapping[str, tuple[int, ...]]


class EventKind(StrEnum):
    """What happened to a member or to the group."""

    JOINED = "joined"
    REJOINED = "rejoined"  #: a known member with a new subscription, or a leader that requests a rebalance
    REPLACED = "replaced"  #: a static member with a new member id; the old one is fenced
    LEFT = "left"
    SESSION_TIMEOUT = "session-timeout"
    REBALANCE_TIMEOUT = "rebalance-timeout"  #: did not rejoin, or did not revoke its partitions, in time
    SYNC_TIMEOUT = "sync-timeout"  #: joined, but did not send SyncGroup in time
    SUBSCRIPTION_CHANGED = "subscription-changed"
    TOPICS_CHANGED = "topics-changed"  #: subscribed topics were created, deleted or got partitions
    PROTOCOL_CHANGED = "protocol-changed"  #: the group was upgraded or downgraded (KIP-848)
    COORDINATOR = "coordinator"  #: a decision of the coordinator itself, which the reason explains


class RebalanceStatus(StrEnum):
    IN_PROGRESS = "in-progress"
    COMPLETED = "completed"  #: all members have their assignments
    SUPERSEDED = "superseded"  #: another rebalance began first


class GroupMember(NamedTuple):
    """The identity of a member; empty for events of the group."""

    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""


NO_MEMBER = GroupMember()


class RebalanceEvent(NamedTuple):
    timestamp_ms: int
    kind: EventKind
    member: GroupMember
    reason: str


@dataclass(slots=True)
class Rebalance:
    """One rebalance; times in ms since the epoch.

    That of a classic group leads from one generation to the next. That of a consumer group lasts until it is stable
    again, so that members which join one after the other cause one rebalance.
    """

    group_type: str  #: classic or consumer
    started_ms: int
    epoch: int = -1  #: the generation or the last group epoch; -1 while the members of a classic group join
    completed_ms: int | None = None
    status: RebalanceStatus = RebalanceStatus.IN_PROGRESS
    events: list[RebalanceEvent] = field(
        default_factory=list
    )  #: the first and the last, at most `EVENTS_MAX`
    events_count: int = 0
    assignments: dict[GroupMember, AssignedTopics] = field(default_factory=dict)  #: at most `MEMBERS_MAX`
    members_count: int = 0
    size_bytes: int = 0  #: approximate; 0 while it is in progress

    @property
    def takes_events(self) -> bool:
        """Whether an event belongs to this rebalance, not to a new one."""
        return self.status is RebalanceStatus.IN_PROGRESS and (self.group_type == CONSUMER or self.epoch < 0)

    def add(self, event: RebalanceEvent) -> None:
        self.events_count += 1
        self.events.append(event)
        if len(self.events) > EVENTS_MAX:
            del self.events[EVENTS_MAX // 2]

    def finish(self, status: RebalanceStatus) -> None:
        self.status = status
        topics = [partitions for assigned in self.assignments.values() for partitions in assigned.values()]
        self.size_bytes = (
            _REBALANCE_BYTES
            + _EVENT_BYTES * len(self.events)
            + _MEMBER_BYTES * len(self.assignments)
            + _TOPIC_BYTES * len(topics)
            + _PARTITION_BYTES * sum(map(len, topics))
        )


class RebalanceHistory:
    """The last rebalances of all groups that this broker coordinates."""

    def __init__(self) -> None:
        self._by_group: dict[
            str, deque[Rebalance]
        ] = {}  #: the group whose rebalance ended last is at the end
        self._size_bytes = 0  #: of rebalances that have ended
        self.started: Counter[tuple[str, EventKind]] = Counter()  #: by type of group and first event
        self.completed: Counter[str] = Counter()  #: by type of group
        self.completed_ms: Counter[str] = Counter()  #: total duration, by type of group

    def of_group(self, group_id: str) -> list[Rebalance]:
        """Return the rebalances of a group, the latest first."""
        return list(reversed(self._by_group.get(group_id, ())))

    def record(
        self,
        group_id: str,
        group_type: str,
        now_ms: int,
        kind: EventKind,
        member: GroupMember = NO_MEMBER,
        reason: str = "",
    ) -> None:
        """Record an event that causes a rebalance or belongs to one that is in progress."""
        rebalance = self._current(group_id)
        if rebalance is None or not rebalance.takes_events or rebalance.group_type != group_type:
            if rebalance is not None:
                self._finish(group_id, rebalance, RebalanceStatus.SUPERSEDED)
            rebalance = Rebalance(group_type, now_ms)
            self._by_group.setdefault(group_id, deque()).append(rebalance)
            self.started[group_type, kind] += 1
        rebalance.add(RebalanceEvent(now_ms, kind, member, reason[:_REASON_LENGTH_MAX]))

    def set_epoch(self, group_id: str, epoch: int) -> None:
        """Set the generation or epoch to which the current rebalance leads."""
        rebalance = self._current(group_id)
        if rebalance is not None:
            rebalance.epoch = epoch

    def set_assignments(
        self, group_id: str, assignments: Iterable[tuple[GroupMember, AssignedTopics]], members_count: int
    ) -> None:
        """Set the assignments of the current rebalance; those beyond `MEMBERS_MAX` or `PARTITIONS_MAX` are left out."""
        rebalance = self._current(group_id)
        if rebalance is None:
            return
        rebalance.members_count, rebalance.assignments = members_count, {}
        partitions_count = 0
        for member, topics in assignments:
            partitions_count += sum(map(len, topics.values()))
            if len(rebalance.assignments) == MEMBERS_MAX or partitions_count > PARTITIONS_MAX:
                break
            rebalance.assignments[member] = topics

    def complete(self, group_id: str, now_ms: int) -> None:
        rebalance = self._current(group_id)
        if rebalance is not None:
            rebalance.completed_ms = now_ms
            self.completed[rebalance.group_type] += 1
            self.completed_ms[rebalance.group_type] += now_ms - rebalance.started_ms
            self._finish(group_id, rebalance, RebalanceStatus.COMPLETED)

    def is_rebalancing(self, group_id: str) -> bool:
        return self._current(group_id) is not None

    def remove_group(self, group_id: str) -> None:
        """Remove a group that was deleted, or whose coordinator moves to another broker."""
        rebalances = self._by_group.pop(group_id, ())
        self._size_bytes -= sum(rebalance.size_bytes for rebalance in rebalances)

    def statistics(self) -> dict[str, int]:
        return {"groups_count": len(self._by_group), "size_bytes": self._size_bytes}

    def _current(self, group_id: str) -> Rebalance | None:
        rebalances = self._by_group.get(group_id)
        if not rebalances or rebalances[-1].status is not RebalanceStatus.IN_PROGRESS:
            return None
        return rebalances[-1]

    def _finish(self, group_id: str, rebalance: Rebalance, status: RebalanceStatus) -> None:
        rebalance.finish(status)
        self._size_bytes += rebalance.size_bytes
        rebalances = self._by_group[group_id] = self._by_group.pop(group_id)
        if len(rebalances) > REBALANCES_MAX:
            self._size_bytes -= rebalances.popleft().size_bytes
        while self._size_bytes > SIZE_BYTES_MAX:
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        """Remove the oldest rebalance of the group that has not rebalanced for the longest time."""
        group_id, rebalances = next(iter(self._by_group.items()))
        self._size_bytes -= rebalances.popleft().size_bytes
        if not rebalances:
            del self._by_group[group_id]
