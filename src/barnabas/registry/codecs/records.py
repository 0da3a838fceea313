"""Decodes and encodes the keys and values of records with the schemas of a registry."""

import json
from collections.abc import Callable
from typing import Any

from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.registry.client import FetchedSchema, RegistryClient, RegistryUnavailable
from barnabas.registry.codecs.errors import MalformedValue
from barnabas.registry.codecs.framing import framed, unframed
from barnabas.registry.codecs.values import JsonCodec, codec_of
from barnabas.registry.errors import RegistryError
from barnabas.registry.schemas import InvalidSchema, SchemaType

#: How long a registry is left alone that did not respond, and how long a schema that it does not have.
_PAUSE_MS = 30_000
_CODECS_MAX = 1_000


class DecodedValue(bytes):
    """JSON of a decoded value, and what it was."""

    schema_id: int
    schema_type: SchemaType
    encoded_bytes: int  #: the size of the value as it is stored

    @classmethod
    def of(cls, value: Any, schema_id: int, schema_type: SchemaType, encoded_bytes: int) -> "DecodedValue":
        """Return a value as JSON."""
        # a lone surrogate, which UTF-8 cannot have, gets the escape of JSON
        decoded = cls(json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace"))
        decoded.schema_id, decoded.schema_type, decoded.encoded_bytes = schema_id, schema_type, encoded_bytes
        return decoded


class RecordDecoder:
    """Decodes what has Confluent's wire format and a schema in the registry; all else stays as it is."""

    def __init__(
        self, client: RegistryClient, now_ms: Callable[[], int], report: Callable[[str], object] | None = None
    ) -> None:
        """:param report: Is called with each problem that is new."""
        self._client = client
        self._now_ms = now_ms
        self._report = report
        self._codecs: dict[int, tuple[SchemaType, JsonCodec]] = {}
        self._missing_until_ms: dict[int, int] = {}
        self._pause_until_ms = 0
        self._reported: set[str] = set()

    def decode(self, record: ConsumedRecord) -> ConsumedRecord:
        """Return a record with key and value decoded. May ask the registry, and waits for it."""
        return record._replace(key=self._decoded(record.key), value=self._decoded(record.value))

    def _decoded(self, data: bytes | None) -> bytes | None:
        value = unframed(data)
        if value is None or data is None:
            return data
        try:
            found = self._codec(value.schema_id)
            if found is None:
                return data
            return DecodedValue.of(found[1].decode(value.body), value.schema_id, found[0], len(data))
        except MalformedValue as error:
            self._note(f"a value of schema {value.schema_id} cannot be decoded: {error}")
            return data

    def _codec(self, schema_id: int) -> tuple[SchemaType, JsonCodec] | None:
        known = self._codecs.get(schema_id)
        now_ms = self._now_ms()
        if known is not None:
            return known
        if now_ms < max(self._pause_until_ms, self._missing_until_ms.get(schema_id, 0)):
            return None
        try:
            schema = self._client.by_id(schema_id).schema
            codec = codec_of(schema.type, self._client.parsed(schema))
        except RegistryUnavailable as error:
            self._pause_until_ms = now_ms + _PAUSE_MS
            self._note(str(error))
            return None
        except (RegistryError, InvalidSchema, ImportError) as error:
            if len(self._missing_until_ms) >= _CODECS_MAX:
                self._missing_until_ms.clear()
            self._missing_until_ms[schema_id] = now_ms + _PAUSE_MS
            self._note(f"schema {schema_id}: {error}")
            return None
        if len(self._codecs) >= _CODECS_MAX:
            self._codecs.clear()
        self._codecs[schema_id] = (schema.type, codec)
        return self._codecs[schema_id]

    def _note(self, problem: str) -> None:
        if self._report is not None and problem not in self._reported and len(self._reported) < _CODECS_MAX:
            self._reported.add(problem)
            self._report(problem)


class ValueEncoder:
    """Encodes JSON with the latest schema of a subject."""

    def __init__(self, client: RegistryClient, subject: str, message: str = "") -> None:
        """:param message: The message of Protobuf; empty for the first one.
        :raises RegistryError: If there is no such subject.
        :raises RegistryUnavailable: If the registry does not respond.
        :raises InvalidSchema: If the schema cannot be used.
        :raises MalformedValue: If it has no such message.
        """
        latest: FetchedSchema = client.version(subject)
        self.schema_id = latest.id
        self._codec = codec_of(latest.schema.type, client.parsed(latest.schema), message)

    def encode(self, text: bytes) -> bytes:
        """Return a value with its header.

        :raises MalformedValue: If the text is not JSON, or does not fit the schema.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MalformedValue(f"it is not JSON: {error}") from None
        return framed(self.schema_id, self._codec.encode(value))
