"""The timers of members: how long one may be silent, keep what it must give up, or take to join and sync again."""

from barnabas.coordinator.result import CoordinatorResult, TimerKey
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import ConsumerGroupMember

SESSION, REBALANCE, REJOIN, SYNC = (
    "consumer-session",
    "consumer-rebalance",
    "consumer-rejoin",
    "consumer-sync",
)


def set_session_timer(
    step: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember, timeout_ms: int
) -> None:
    """Expect the next sign of life; a classic member has told how long it may be silent."""
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    step.set_timer((SESSION, group.group_id, member.member_id), timeout_ms)


def set_rebalance_timer(step: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Expect that the member gives up what is revoked, which ends its epoch."""
    group.leaving_epochs[member.member_id] = member.member_epoch
    step.set_timer((REBALANCE, group.group_id, member.member_id), member.rebalance_timeout_ms)


def cancel_rebalance_timer(step: CoordinatorResult, group: ConsumerGroup, member_id: str) -> None:
    """The member has given up what it had to."""
    if group.leaving_epochs.pop(member_id, None) is not None:
        step.cancel_timer((REBALANCE, group.group_id, member_id))


def set_rejoin_timer(step: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Expect a classic member that has been told so to join again; being told again gives it no more time."""
    if member.member_id not in group.rejoining:
        group.rejoining.add(member.member_id)
        step.set_timer((REJOIN, group.group_id, member.member_id), member.rebalance_timeout_ms)


def cancel_rejoin_timer(step: CoordinatorResult, group: ConsumerGroup, member_id: str) -> None:
    """The member has joined again."""
    if member_id in group.rejoining:
        group.rejoining.remove(member_id)
        step.cancel_timer((REJOIN, group.group_id, member_id))


def set_sync_timer(step: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Expect a classic member that has joined to ask for its assignment."""
    step.set_timer((SYNC, group.group_id, member.member_id), member.rebalance_timeout_ms)


def cancel_sync_timer(step: CoordinatorResult, group: ConsumerGroup, member_id: str) -> None:
    """The member has asked."""
    step.cancel_timer((SYNC, group.group_id, member_id))


def cancel_timers(step: CoordinatorResult, group: ConsumerGroup, member_id: str) -> None:
    """The member has gone."""
    step.cancel_timer((SESSION, group.group_id, member_id))
    cancel_rebalance_timer(step, group, member_id)
    cancel_rejoin_timer(step, group, member_id)
    cancel_sync_timer(step, group, member_id)


def has_left_epoch(group: ConsumerGroup, key: TimerKey) -> bool:
    """Whether the member of a rebalance timer that is due has got on in time."""
    _, _, member_id = key
    assert isinstance(member_id, str)
    epoch = group.leaving_epochs.pop(member_id, None)
    member = group.members.get(member_id)
    return member is None or member.member_epoch != epoch
