"""Encode and decode messages with kio, whose schemas come from Kafka independently of ours."""

import io
from importlib import import_module
from typing import Any

from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from barnabas.wire.messages.index import APIS
from barnabas.wire.schema import Message


def knows(message: type[Message], version: int) -> bool:
    """Whether kio has the message at this version."""
    return version in schema_name_map[APIS[message.API_KEY][0]]


def _entity(message: type[Message], version: int) -> Any:
    module_name, _ = APIS[message.API_KEY]
    is_request = message.__name__.endswith("Request")
    path = schema_name_map[module_name][version][EntityType.request if is_request else EntityType.response]
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def read_by_kio(message: type[Message], version: int, encoded: bytes) -> Any:
    """Decode the bytes with kio, which must consume all of them."""
    value, size = entity_reader(_entity(message, version))(encoded, 0)
    assert size == len(encoded)
    return value


def written_by_kio(message: type[Message], version: int, value: Any) -> bytes:
    """Encode with kio a value that kio has decoded."""
    buffer = io.BytesIO()
    entity_writer(_entity(message, version))(buffer, value)
    return buffer.getvalue()
