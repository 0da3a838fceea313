"""RollbackResource (api key 32000)."""

from barnabas.wire.schema import (
    Message,
    Struct,
    Versions,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    versions,
)


class RollbackResourceRequest(Message):
    API_KEY = 32000
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    resource: str = string(default="")
    revision: int = int64(default=0)
    validate_only: bool = boolean(default=False)


class RestoredKey(Struct):
    key: str = string(default="")
    before: str | None = string(default=None, nullable="0+")
    after: str | None = string(default=None, nullable="0+")


class RollbackResourceResponse(Message):
    API_KEY = 32000
    VERSIONS = Versions(0, 0)
    FLEXIBLE = versions("0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(default=0)
    error_message: str | None = string(default=None, nullable="0+")
    resource: str = string(default="")
    keys: list[RestoredKey] = array(RestoredKey, default=...)
    notes: list[str] = array("string", default=...)
