"""The timers of a classic group."""

from barnabas.coordinator.result import CoordinatorResult, TimerKey
from barnabas.groups.classic.member import ClassicGroupMember

#: Purposes: the end of the join phase, of the sync phase, and of a member's session.
JOIN, SYNC, SESSION = "classic join", "classic sync", "classic session"

#: How long a member is kept whose first JoinGroup is not answered: it cannot send heartbeats, but may retry.
NEW_MEMBER_JOIN_MS = 5 * 60 * 1000


def join_timer(group_id: str) -> TimerKey:
    return (JOIN, group_id)


def sync_timer(group_id: str) -> TimerKey:
    return (SYNC, group_id)


def session_timer(group_id: str, member_id: str) -> TimerKey:
    return (SESSION, group_id, member_id)


def await_heartbeat(result: CoordinatorResult, group_id: str, member: ClassicGroupMember) -> None:
    """Restart the session timeout of a member."""
    result.set_timer(session_timer(group_id, member.member_id), member.session_timeout_ms)
