"""DescribeAclDecisions (api key 32008)."""

from barnabas.wire.schema import (
    Message,
    Struct,
    Versions,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    versions,
)


class DescribeAclDecisionsRequest(Message):
    API_KEY = 32008
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")


class RecordedAclDecision(Struct):
    principal: str = string(default="")
    host: str = string(default="")
    operation: int = int8(default=0)
    resource_type: int = int8(default=0)
    resource_name: str | None = string(default="", nullable="0+")
    is_allowed: bool = boolean(default=False)
    last_used: int = int64(default=-1)


class DescribeAclDecisionsResponse(Message):
    API_KEY = 32008
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    since: int = int64(default=-1)
    left_out_count: int = int64(default=0)
    super_users: list[str] = array("string", default=...)
    allows_if_no_acl: bool = boolean(default=False)
    decisions: list[RecordedAclDecision] = array(RecordedAclDecision, default=...)
