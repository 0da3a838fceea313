"""Timers of members: session, revocation, rejoin and sync."""

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
    result: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember, timeout_ms: int
) -> None:
    """Start the session timeout; that of a classic member is its own."""
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    result.set_timer((SESSION, group.group_id, member.member_id), timeout_ms)


def set_rebalance_timer(result: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Start the rebalance timeout, within which the member must revoke partitions."""
    group.leaving_epochs[member.member_id] = member.member_epoch
    result.set_timer((REBALANCE, group.group_id, member.member_id), member.rebalance_timeout_ms)


def cancel_rebalance_timer(result: CoordinatorResult, group: ConsumerGroup, member_id: str) -> None:
    result.cancel_timer((REBALANCE, group.group_id, member_id))


def set_rejoin_timer(result: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Start the timeout of a classic member to rejoin; a repeated call does not extend it."""
    if member.member_id not in group.rejoining:
        group.rejoining.add(member.member_id)
        result.set_timer((REJOIN, group.group_id, member.member_id), member.rebalance_timeout_ms)


def cancel_rejoin_timer(result: CoordinatorResult, group: ConsumerGroup, member_id: str) -> None:
    """Stop the timeout, even if an earlier call did: its result may not have been appended."""
    group.rejoining.discard(member_id)
    result.cancel_timer((REJOIN, group.group_id, member_id))


def set_sync_timer(result: CoordinatorResult, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Start the timeout of a classic member to send SyncGroup."""
    result.set_timer((SYNC, group.group_id, member.member_id), member.rebalance_timeout_ms)


def cancel_sync_timer(result: CoordinatorResult, group: ConsumerGroup, member_id: str) -> None:
    result.cancel_timer((SYNC, group.group_id, member_id))


def cancel_timers(result: CoordinatorResult, group: ConsumerGroup, member_id: str) -> None:
    """Stop the timers of a member that leaves; what they are about is kept until its records are replayed."""
    for purpose in (SESSION, REBALANCE, REJOIN, SYNC):
        result.cancel_timer((purpose, group.group_id, member_id))


def has_left_epoch(group: ConsumerGroup, key: TimerKey) -> bool:
    """Return whether the member has left the epoch of a rebalance timer in time."""
    _, _, member_id = key
    assert isinstance(member_id, str)
    epoch = group.leaving_epochs.get(member_id)
    member = group.members.get(member_id)
    return member is None or member.member_epoch != epoch
