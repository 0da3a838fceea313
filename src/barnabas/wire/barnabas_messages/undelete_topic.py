"""UndeleteTopic (api key 32003)."""

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.schema import Message, Versions, int16, int32, string, uuid, versions


class UndeleteTopicRequest(Message):
    API_KEY = 32003
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    name: str = string(default="")
    topic_id: bytes = uuid(default=ZERO_UUID)
    new_name: str | None = string(default=None, nullable="0+")
    timeout_ms: int = int32(default=60000)


class UndeleteTopicResponse(Message):
    API_KEY = 32003
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    name: str = string(default="")
    topic_id: bytes = uuid(default=ZERO_UUID)
    partition_count: int = int32(default=0)
    offset_count: int = int32(default=0)
