"""DescribeRebalances (api key 32006)."""

from barnabas.wire.schema import (
    Message,
    Struct,
    Versions,
    array,
    int16,
    int32,
    int64,
    nested,
    string,
    versions,
)


class DescribeRebalancesRequest(Message):
    API_KEY = 32006
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    group_id: str = string(default="")


class DescribedRebalanceMember(Struct):
    member_id: str = string(default="")
    instance_id: str | None = string(default=None, nullable="0+")
    client_id: str = string(default="")
    client_host: str = string(default="")


class DescribedRebalanceEvent(Struct):
    timestamp_ms: int = int64(default=-1)
    kind: str = string(default="")
    reason: str = string(default="")
    member: DescribedRebalanceMember = nested(DescribedRebalanceMember, default=...)


class AssignedTopic(Struct):
    name: str = string(default="")
    partition_indexes: list[int] = array("int32", default=...)


class MemberAssignment(Struct):
    member: DescribedRebalanceMember = nested(DescribedRebalanceMember, default=...)
    topics: list[AssignedTopic] = array(AssignedTopic, default=...)


class DescribedRebalance(Struct):
    group_type: str = string(default="")
    status: str = string(default="")
    epoch: int = int32(default=-1)
    started_ms: int = int64(default=-1)
    completed_ms: int = int64(default=-1)
    events_count: int = int32(default=0)
    events: list[DescribedRebalanceEvent] = array(DescribedRebalanceEvent, default=...)
    members_count: int = int32(default=0)
    assignments: list[MemberAssignment] = array(MemberAssignment, default=...)


class DescribeRebalancesResponse(Message):
    API_KEY = 32006
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    group_type: str = string(default="")
    group_state: str = string(default="")
    rebalances: list[DescribedRebalance] = array(DescribedRebalance, default=...)
