"""Encodes requests and decodes responses, with their headers. No IO."""

import struct
import sys
from functools import cache
from typing import cast

from barnabas.base.buffers import Buffer
from barnabas.wire.codec import DecodeError, decode, encode_parts
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.primitives import skip_tagged_fields, write_nullable_string
from barnabas.wire.schema import Message

_HEADER = struct.Struct(">ihhi")
_SIZE_BYTES = 4
_INT16 = struct.Struct(">h")


def api_name(message: type[Message]) -> str:
    """Return the API's name as Kafka spells it: "Produce" of ProduceRequest."""
    return message.__name__.removesuffix("Request").removesuffix("Response")


@cache
def response_type(request: type[Message]) -> type[Message]:
    """Return the message type of a request's response."""
    module = sys.modules[request.__module__]
    return cast("type[Message]", getattr(module, f"{api_name(request)}Response"))


def encode_request(request: Message, version: int, correlation_id: int, client_id: str) -> list[Buffer]:
    """Return a whole frame with its length; record data is not copied."""
    header = bytearray(_HEADER.pack(0, request.API_KEY, version, correlation_id))
    write_nullable_string(header, client_id)
    if version in request.FLEXIBLE:
        header.append(0)  # no tagged fields
    parts = encode_parts(request, version, header)
    # The first part is a view of `header`, so the length can be filled in now.
    struct.pack_into(">i", header, 0, sum(len(part) for part in parts) - _SIZE_BYTES)
    return parts


def decode_response(request: type[Message], version: int, frame: Buffer) -> Message:
    """Return the message in a response frame (without length, with correlation id).

    :raises barnabas.wire.codec.DecodeError: When the bytes are not that response.
    """
    try:
        position, version = _body(request, version, frame)
    except (ValueError, IndexError, struct.error) as error:
        message = f"the header of a response to {api_name(request)} cannot be read: {error}"
        raise DecodeError(message) from error
    return decode(response_type(request), version, frame, position)


def _body(request: type[Message], version: int, frame: Buffer) -> tuple[int, int]:
    """Return the offset of the response after its header, and its version."""
    if request is ApiVersionsRequest:
        # The header of ApiVersions has no tagged fields, and a refused version is answered in version 0 (KIP-511).
        (error_code,) = _INT16.unpack_from(frame, _SIZE_BYTES)
        return _SIZE_BYTES, 0 if error_code == ErrorCode.UNSUPPORTED_VERSION else version
    if version in response_type(request).FLEXIBLE:
        return skip_tagged_fields(frame, _SIZE_BYTES), version
    return _SIZE_BYTES, version
