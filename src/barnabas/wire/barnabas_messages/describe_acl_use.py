"""DescribeAclUse (api key 32001)."""

from barnabas.wire.schema import (
    Message,
    Struct,
    Versions,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    versions,
)


class DescribeAclUseRequest(Message):
    API_KEY = 32001
    VERSIONS = Versions(0, 1)
    FLEXIBLE = versions("0+")


class UsedAcl(Struct):
    resource_type: int = int8(default=0)
    resource_name: str = string(default="")
    pattern_type: int = int8(default=0)
    principal: str = string(default="")
    host: str = string(default="")
    operation: int = int8(default=0)
    permission_type: int = int8(default=0)
    last_used: int = int64(default=-1)
    created: int = int64("1+", default=-1)


class DescribeAclUseResponse(Message):
    API_KEY = 32001
    VERSIONS = Versions(0, 1)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    since: int = int64(default=-1)
    acls: list[UsedAcl] = array(UsedAcl, default=...)
