"""Heartbeat to a classic group."""

from barnabas.coordinator.step import Step
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.states import ClassicState
from barnabas.groups.classic.timers import await_heartbeat
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(step: Step, group: ClassicGroup, request: HeartbeatRequest) -> HeartbeatResponse:
    """The member is there; while a rebalance is prepared it is told to join.

    :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member = group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    await_heartbeat(step, group.group_id, member)
    if group.state is ClassicState.PREPARING_REBALANCE:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()
