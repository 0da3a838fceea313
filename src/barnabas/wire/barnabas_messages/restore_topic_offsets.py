"""RestoreTopicOffsets (api key 32010)."""

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.barnabas_messages.topic_offsets import GroupPartitionOffset
from barnabas.wire.schema import Message, Struct, Versions, array, int16, int32, string, uuid, versions


class RestoreTopicOffsetsRequest(Message):
    API_KEY = 32010
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    name: str = string(default="")
    topic_id: bytes = uuid(default=ZERO_UUID)
    offsets: list[GroupPartitionOffset] = array(GroupPartitionOffset, default=...)


class RestoredGroup(Struct):
    group_id: str = string(default="")
    error_code: int = int16(default=0)
    offset_count: int = int32(default=0)


class RestoreTopicOffsetsResponse(Message):
    API_KEY = 32010
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    groups: list[RestoredGroup] = array(RestoredGroup, default=...)
