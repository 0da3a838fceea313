"""The framing of schema registries: a zero byte and the schema id before a value."""

from typing import NamedTuple

from pyspark_barnabas.codecs.errors import ConversionError

_MAGIC = b"\0"
_HEADER_BYTES = 5


class Frame(NamedTuple):
    """The framing of values."""

    confluent: bool = False
    schema_id: int | None = None  #: the only valid id; None for any
    registry: str = ""  #: URL of the registry that has the schemas of other ids; empty for none
    own_id: int = 0  #: with a registry: the id of the schema

    def opened(self, value: bytes) -> bytes:
        """Return the value in the frame.

        :raises ConversionError: It is not framed, or has another schema id.
        """
        return self.parts(value)[1] if self.confluent else value

    def parts(self, value: bytes) -> tuple[int, bytes]:
        """Return the schema id of a framed value, and the value in the frame.

        :raises ConversionError: It is not framed, or has another schema id.
        """
        if len(value) < _HEADER_BYTES or value[:1] != _MAGIC:
            raise ConversionError(
                "it does not begin with a byte 0 and a schema id, as framing: confluent wants"
            )
        schema_id = int.from_bytes(value[1:_HEADER_BYTES], "big")
        if self.schema_id is not None and schema_id != self.schema_id:
            raise ConversionError(f"its schema id is {schema_id}, not {self.schema_id}")
        return schema_id, value[_HEADER_BYTES:]

    def around(self, body: bytes) -> bytes:
        """Return a framed value; requires a schema id."""
        if not self.confluent:
            return body
        schema_id = self.own_id if self.registry else self.schema_id
        assert schema_id is not None, "what is written has one"
        return _MAGIC + schema_id.to_bytes(_HEADER_BYTES - 1, "big") + body

    def hint(self, value: bytes) -> str:
        """Return a hint for a value that could not be decoded."""
        framed = not self.confluent and len(value) > _HEADER_BYTES and value[:1] == _MAGIC
        return (
            "; it begins as values of a schema registry do, for which is framing: confluent" if framed else ""
        )


def zigzag(number: int) -> bytes:
    """Return a zigzag varint (sint32 of Protobuf)."""
    left, encoded = number << 1 if number >= 0 else (-number << 1) - 1, bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*encoded, left])


def unzigzag(value: bytes, at: int) -> tuple[int, int]:
    """Return a number and its end position.

    :raises ConversionError: There is none.
    """
    number, shift = 0, 0
    for index in range(at, min(at + 5, len(value))):
        number |= (value[index] & 0x7F) << shift
        shift += 7
        if value[index] < 0x80:
            return (number >> 1) ^ -(number & 1), index + 1
    raise ConversionError("it has no message number behind its schema id, as framing: confluent wants")
