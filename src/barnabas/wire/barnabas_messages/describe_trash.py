"""DescribeTrash (api key 32002)."""

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.schema import Message, Struct, Versions, array, int16, int32, int64, string, uuid, versions


class DescribeTrashRequest(Message):
    API_KEY = 32002
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")


class TrashedTopic(Struct):
    name: str = string(default="")
    topic_id: bytes = uuid(default=ZERO_UUID)
    partition_count: int = int32(default=0)
    size_bytes: int = int64(default=0)
    deleted_ms: int = int64(default=0)
    deleted_by: str = string(default="")
    expires_ms: int = int64(default=0)


class DescribeTrashResponse(Message):
    API_KEY = 32002
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    topics: list[TrashedTopic] = array(TrashedTopic, default=...)
