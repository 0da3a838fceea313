"""The timers of a classic group."""

from barnabas.coordinator.result import CoordinatorResult, TimerKey
from barnabas.groups.classic.member import ClassicGroupMember

#: What each is for: no more waiting for members to join, to sync; a member that has not been heard of.
JOIN, SYNC, SESSION = "classic join", "classic sync", "classic session"

#: How long a member whose first join is not answered yet is kept: it cannot send heartbeats, but may ask again.
NEW_MEMBER_JOIN_MS = 5 * 60 * 1000


def join_timer(group_id: str) -> TimerKey:
    """The end of the wait for members to join."""
    return (JOIN, group_id)


def sync_timer(group_id: str) -> TimerKey:
    """The end of the wait for members to sync."""
    return (SYNC, group_id)


def session_timer(group_id: str, member_id: str) -> TimerKey:
    """The end of the wait for a sign of life."""
    return (SESSION, group_id, member_id)


def await_heartbeat(step: CoordinatorResult, group_id: str, member: ClassicGroupMember) -> None:
    """A member has been heard of: give it its session timeout anew."""
    step.set_timer(session_timer(group_id, member.member_id), member.session_timeout_ms)
