"""The history of a group's rebalances, which only Barnabas keeps."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.client.core.errors import check
from barnabas.wire.barnabas_messages.describe_rebalances import (
    DescribedRebalance,
    DescribedRebalanceMember,
    DescribeRebalancesResponse,
)

#: Texts of events; those of a member follow its name.
_EVENT_TEXTS = {
    "joined": "joined",
    "rejoined": "requested a rebalance",
    "replaced": "replaced another member",
    "left": "left",
    "session-timeout": "was removed (session timeout)",
    "rebalance-timeout": "was removed (rebalance timeout)",
    "sync-timeout": "was removed (no SyncGroup)",
    "subscription-changed": "changed its subscription",
    "topics-changed": "subscribed topics changed",
    "protocol-changed": "the group changed its protocol",
    "coordinator": "the coordinator started a rebalance",
}


class MemberIdentity(NamedTuple):
    """The ids of a member; empty for an event of the whole group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str

    @property
    def label(self) -> str:
        """A short name: the instance id of a static member, else the member id."""
        return self.instance_id or self.member_id


class RebalanceEventDescription(NamedTuple):
    timestamp_ms: int
    kind: str  #: joined, left, session-timeout ...
    member: MemberIdentity
    reason: str

    @property
    def text(self) -> str:
        return _EVENT_TEXTS.get(self.kind, self.kind)


class RebalanceDescription(NamedTuple):
    """A rebalance; times in ms since the epoch. Long lists of events and assignments are cut by the broker."""

    group_type: str
    status: str  #: completed, in-progress or superseded
    epoch: int  #: the generation of a classic group; -1 if it was not reached
    started_ms: int
    completed_ms: int | None
    events_count: int
    events: Sequence[RebalanceEventDescription]
    members_count: int
    assignments: Mapping[MemberIdentity, Mapping[str, Sequence[int]]]  #: member -> topic -> partitions

    @property
    def duration_ms(self) -> int | None:
        return None if self.completed_ms is None else self.completed_ms - self.started_ms


class GroupRebalances(NamedTuple):
    """A group's type, its state now, and its last rebalances, the latest first."""

    group_id: str
    type: str
    state: str
    rebalances: Sequence[RebalanceDescription]


def format_partitions(topics: Mapping[str, Sequence[int]]) -> str:
    """Format partitions with ranges: `orders 0-2 5, payments 1`."""
    return ", ".join(f"{topic} {' '.join(_ranges(sorted(indexes)))}" for topic, indexes in topics.items())


def _ranges(indexes: Sequence[int]) -> list[str]:
    ranges: list[tuple[int, int]] = []
    for index in indexes:
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], index)
        else:
            ranges.append((index, index))
    return [str(first) if first == last else f"{first}-{last}" for first, last in ranges]


def parse_describe_rebalances_response(
    group_id: str, response: DescribeRebalancesResponse
) -> GroupRebalances:
    """Return the rebalances of a group.

    :raises KafkaError: From the broker.
    """
    check(response.error_code, response.error_message)
    rebalances = [_description(rebalance) for rebalance in response.rebalances]
    return GroupRebalances(group_id, response.group_type, response.group_state, rebalances)


def _description(rebalance: DescribedRebalance) -> RebalanceDescription:
    return RebalanceDescription(
        rebalance.group_type,
        rebalance.status,
        rebalance.epoch,
        rebalance.started_ms,
        None if rebalance.completed_ms < 0 else rebalance.completed_ms,
        rebalance.events_count,
        [
            RebalanceEventDescription(event.timestamp_ms, event.kind, _identity(event.member), event.reason)
            for event in rebalance.events
        ],
        rebalance.members_count,
        {
            _identity(assignment.member): {topic.name: topic.partition_indexes for topic in assignment.topics}
            for assignment in rebalance.assignments
        },
    )


def _identity(member: DescribedRebalanceMember) -> MemberIdentity:
    return MemberIdentity(member.member_id, member.instance_id, member.client_id, member.client_host)
