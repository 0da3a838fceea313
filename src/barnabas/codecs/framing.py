"""The framing of schema registries: a zero byte and the schema id before a value."""

from typing import NamedTuple

from barnabas.codecs.binary_column import ValueHeader
from barnabas.codecs.errors import ConversionError
from barnabas.registry.codecs.framing import HEADER_BYTES, FramedValue, framed, unframed


class Frame(NamedTuple):
    """Whether values are framed, and which schema ids are valid."""

    confluent: bool = False
    schema_id: int | None = None  #: the only valid id; None for any
    registry: str = ""  #: URL of the registry that has the schemas of other ids; empty for none
    own_id: int = 0  #: with a registry: the id of the schema

    def header(self) -> ValueHeader:
        """Return what values begin with; with a registry, those of its own id."""
        if not self.confluent:
            return ValueHeader()
        schema_id = self.own_id if self.registry else self.schema_id
        if schema_id is None:
            return ValueHeader(framed(0, b""), range(1, HEADER_BYTES))
        return ValueHeader(framed(schema_id, b""))

    def opened(self, value: bytes) -> bytes:
        """Return the value in the frame.

        :raises ConversionError: It is not framed, or has another schema id.
        """
        return self.parts(value).body if self.confluent else value

    def parts(self, value: bytes) -> FramedValue:
        """Return the schema id of a framed value, and the value in the frame.

        :raises ConversionError: It is not framed, or has another schema id.
        """
        parts = unframed(value)
        if parts is None:
            raise ConversionError(
                "it does not begin with a byte 0 and a schema id, as framing: confluent requires"
            )
        if self.schema_id is not None and parts.schema_id != self.schema_id:
            raise ConversionError(f"its schema id is {parts.schema_id}, not {self.schema_id}")
        return parts

    def around(self, body: bytes) -> bytes:
        """Return a framed value; requires a schema id."""
        if not self.confluent:
            return body
        schema_id = self.own_id if self.registry else self.schema_id
        assert schema_id is not None, "what is written has one"
        return framed(schema_id, body)

    def hint(self, value: bytes) -> str:
        """Return a hint for a value that could not be decoded."""
        parts = None if self.confluent else unframed(value)
        if parts is None or not parts.body:
            return ""
        return "; it begins like a value of a schema registry: set framing: confluent"
