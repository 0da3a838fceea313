"""DescribeClusterStatus (api key 32007)."""

from barnabas.wire.schema import (
    Message,
    Struct,
    Versions,
    array,
    boolean,
    byte_string,
    int16,
    int32,
    int64,
    string,
    versions,
)


class DescribeClusterStatusRequest(Message):
    API_KEY = 32007
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    include_load: bool = boolean(default=True)


class MetadataHash(Struct):
    revision: int = int64(default=0)
    hash: bytes = byte_string(default=b"")


class RegisteredBroker(Struct):
    broker_id: int = int32(default=0)
    epoch: int = int64(default=-1)
    is_fenced: bool = boolean(default=False)
    has_session: bool = boolean(default=False)
    since_ms: int = int64(default=-1)


class MetadataStoreMember(Struct):
    address: str = string(default="")
    name: str = string(default="")
    role: str = string(default="")
    version: str = string(default="")
    size_bytes: int = int64(default=-1)
    reason: str = string(default="")


class DescribeClusterStatusResponse(Message):
    API_KEY = 32007
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    broker_id: int = int32(default=0)
    software_version: str = string(default="")
    store: str = string(default="")
    store_members: list[MetadataStoreMember] = array(MetadataStoreMember, default=...)
    revision: int = int64(default=0)
    hashes: list[MetadataHash] = array(MetadataHash, default=...)
    brokers: list[RegisteredBroker] = array(RegisteredBroker, default=...)
    log_bytes: int = int64(default=-1)
    in_bytes_per_second: int = int64(default=-1)
    out_bytes_per_second: int = int64(default=-1)
