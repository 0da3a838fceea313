"""Heartbeats to a classic group."""

from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.states import ClassicState
from barnabas.groups.classic.timers import await_heartbeat
from barnabas.wire.errors import ErrorCode


class Heartbeat(NamedTuple):
    """The fields of a Heartbeat request."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


def heartbeat(result: CoordinatorResult, group: ClassicGroup, beat: Heartbeat) -> ErrorCode:
    """Reset the member's session timeout; return REBALANCE_IN_PROGRESS if a rebalance is being prepared.

    :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
    """
    member = group.check_member(beat.member_id, beat.group_instance_id)
    group.check_generation(beat.generation_id)
    await_heartbeat(result, group.group_id, member)
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
