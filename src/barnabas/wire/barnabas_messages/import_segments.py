"""ImportSegments (api key 32005)."""

from barnabas.wire.schema import Message, Struct, Versions, array, int16, int32, int64, string, versions


class ImportSegmentsTopic(Struct):
    name: str = string(default="")
    partition_indexes: list[int] = array("int32", default=...)


class ImportSegmentsRequest(Message):
    API_KEY = 32005
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    topics: list[ImportSegmentsTopic] = array(ImportSegmentsTopic, default=...)


class ImportedPartition(Struct):
    topic: str = string(default="")
    partition_index: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    start_offset: int = int64(default=-1)
    end_offset: int = int64(default=-1)


class ImportSegmentsResponse(Message):
    API_KEY = 32005
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    results: list[ImportedPartition] = array(ImportedPartition, default=...)
