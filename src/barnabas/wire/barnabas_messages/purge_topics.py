"""PurgeTopics (api key 32004)."""

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.schema import Message, Struct, Versions, array, int16, int32, string, uuid, versions


class TopicToPurge(Struct):
    name: str = string(default="")
    topic_id: bytes = uuid(default=ZERO_UUID)


class PurgeTopicsRequest(Message):
    API_KEY = 32004
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    topics: list[TopicToPurge] = array(TopicToPurge, default=...)


class PurgedTopic(Struct):
    name: str = string(default="")
    topic_id: bytes = uuid(default=ZERO_UUID)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")


class PurgeTopicsResponse(Message):
    API_KEY = 32004
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    results: list[PurgedTopic] = array(PurgedTopic, default=...)
