"""DescribeTopicOffsets (api key 32009)."""

from barnabas.wire.barnabas_messages.topic_offsets import GroupPartitionOffset
from barnabas.wire.schema import Message, Struct, Versions, array, int16, int32, string, versions


class DescribeTopicOffsetsRequest(Message):
    API_KEY = 32009
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    topics: list[str] = array("string", default=...)


class OffsetsOfTopic(Struct):
    name: str = string(default="")
    offsets: list[GroupPartitionOffset] = array(GroupPartitionOffset, default=...)


class DescribeTopicOffsetsResponse(Message):
    API_KEY = 32009
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    topics: list[OffsetsOfTopic] = array(OffsetsOfTopic, default=...)
