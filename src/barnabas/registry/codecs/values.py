"""Codecs of values, by their schemas: what is JSON here is bytes without their header there."""

import json
import re
from collections.abc import Sequence
from typing import Any, Protocol

from barnabas.registry.codecs.errors import MalformedValue
from barnabas.registry.codecs.framing import read_message_indexes, written_message_indexes
from barnabas.registry.codecs.message_indexes import message_at, message_indexes
from barnabas.registry.schemas import ParsedSchema, SchemaType


class JsonCodec(Protocol):
    """Decodes values of one schema to JSON, and encodes JSON."""

    def decode(self, body: bytes) -> Any:
        """:raises MalformedValue: If it is not a value of the schema."""

    def encode(self, value: Any) -> bytes:
        """:raises MalformedValue: If it does not fit the schema."""


def codec_of(kind: SchemaType, schema: ParsedSchema, message: str = "") -> JsonCodec:
    """Return the codec of a schema.

    :param message: The message of Protobuf to encode; empty for the first one.
    :raises MalformedValue: If there is no such message.
    """
    match kind:
        case SchemaType.AVRO:
            return _AvroValues(schema)
        case SchemaType.JSON:
            return _JsonValues(schema)
        case SchemaType.PROTOBUF:
            return _ProtobufValues(schema, message)


class _AvroValues:
    def __init__(self, schema: ParsedSchema) -> None:
        from barnabas.registry.avro.schema import AvroSchema

        assert isinstance(schema, AvroSchema)
        self._root = schema.root

    def decode(self, body: bytes) -> Any:
        from barnabas.registry.codecs.avro_reader import read_avro

        return read_avro(self._root, body)

    def encode(self, value: Any) -> bytes:
        from barnabas.registry.codecs.avro_writer import write_avro

        return write_avro(self._root, value)


class _JsonValues:
    def __init__(self, schema: ParsedSchema) -> None:
        from barnabas.registry.json_schema.schema import JsonSchema

        assert isinstance(schema, JsonSchema)
        self._validator = schema.validator()

    def decode(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise MalformedValue(f"it is not JSON: {error}") from None

    def encode(self, value: Any) -> bytes:
        try:
            error = next(self._validator.iter_errors(value), None)
        except re.error as unknown:  # where jsonschema itself uses a pattern that only RE2 has
            raise MalformedValue(f"a pattern of the schema cannot be checked here: {unknown}") from None
        if error is not None:
            raise MalformedValue(error.message, error.json_path.removeprefix("$").removeprefix("."))
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode(errors="backslashreplace")  # the escape of JSON for a lone surrogate


class _ProtobufValues:
    """Before a message are the indexes of its descriptor: of a message of the file, then of one within that."""

    def __init__(self, schema: ParsedSchema, message: str) -> None:
        from barnabas.registry.protobuf.schema import ProtobufSchema

        assert isinstance(schema, ProtobufSchema)
        self._file = schema.descriptor
        self._encoded: Sequence[int] = self._indexes_of(message) if message else (0,)

    def decode(self, body: bytes) -> Any:
        from google.protobuf.json_format import Error, MessageToDict
        from google.protobuf.message import DecodeError

        indexes, start = read_message_indexes(body)
        message = self._message_class(indexes)()
        name = message.DESCRIPTOR.full_name
        try:
            message.ParseFromString(body[start:])
        except DecodeError as error:
            raise MalformedValue(f"it is not a {name}: {error}") from None
        try:
            return MessageToDict(message, preserving_proto_field_name=True)
        except (Error, DecodeError, TypeError) as error:  # such as an Any of an unknown type
            raise MalformedValue(f"it is a {name} that JSON cannot have: {error}") from None

    def encode(self, value: Any) -> bytes:
        from google.protobuf.json_format import ParseDict, ParseError
        from google.protobuf.message import EncodeError

        if not isinstance(value, dict):
            raise MalformedValue("a message must be a JSON object")
        message = self._message_class(self._encoded)()
        try:
            ParseDict(value, message)
            body: bytes = message.SerializeToString()
        except (ParseError, EncodeError) as error:
            raise MalformedValue(str(error)) from None
        return written_message_indexes(self._encoded) + body

    def _message_class(self, indexes: Sequence[int]) -> Any:
        from google.protobuf.message_factory import GetMessageClass

        descriptor = message_at(self._file, indexes)
        if descriptor is None:
            raise MalformedValue(f"the schema has no message with the indexes {list(indexes)}")
        return GetMessageClass(descriptor)

    def _indexes_of(self, name: str) -> Sequence[int]:
        """Return the indexes of a message by its full name, or without its package."""
        package = self._file.package
        full = name if not package or name.startswith(f"{package}.") else f"{package}.{name}"
        pending = list(self._file.message_types_by_name.values())
        while pending:
            descriptor = pending.pop()
            if descriptor.full_name == full:
                return message_indexes(descriptor)
            pending += descriptor.nested_types
        names = ", ".join(self._file.message_types_by_name)
        raise MalformedValue(f"the schema has no message {name}; it has {names}")
