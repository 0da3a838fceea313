"""What schema registries put before a value: a byte that is 0, and the number of the schema."""

from typing import NamedTuple

from pyspark_barnabas.pipelines.codecs.errors import ConversionError

_MAGIC = b"\0"
_HEADER_BYTES = 5


class Frame(NamedTuple):
    """How values are framed."""

    confluent: bool = False
    schema_id: int | None = None  #: the only one that is right; None to take any

    def opened(self, value: bytes) -> bytes:
        """What is in the frame.

        :raises ConversionError: It is not framed, or has another schema.
        """
        if not self.confluent:
            return value
        if len(value) < _HEADER_BYTES or value[:1] != _MAGIC:
            raise ConversionError(
                "it does not begin with a byte 0 and a schema id, as framing: confluent wants"
            )
        found = int.from_bytes(value[1:_HEADER_BYTES], "big")
        if self.schema_id is not None and found != self.schema_id:
            raise ConversionError(f"its schema id is {found}, not {self.schema_id}")
        return value[_HEADER_BYTES:]

    def around(self, body: bytes) -> bytes:
        """A value with its frame, which must have a schema id."""
        if not self.confluent:
            return body
        assert self.schema_id is not None, "what is written has one"
        return _MAGIC + self.schema_id.to_bytes(_HEADER_BYTES - 1, "big") + body

    def hint(self, value: bytes) -> str:
        """What to add when a value could not be read."""
        framed = not self.confluent and len(value) > _HEADER_BYTES and value[:1] == _MAGIC
        return (
            "; it begins as values of a schema registry do, for which is framing: confluent" if framed else ""
        )


def zigzag(number: int) -> bytes:
    """A whole number as the wire of Protobuf has those of sint32."""
    left, found = number << 1 if number >= 0 else (-number << 1) - 1, bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def unzigzag(value: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends.

    :raises ConversionError: There is none.
    """
    found, shift = 0, 0
    for index in range(at, min(at + 5, len(value))):
        found |= (value[index] & 0x7F) << shift
        shift += 7
        if value[index] < 0x80:
            return (found >> 1) ^ -(found & 1), index + 1
    raise ConversionError("it has no message number behind its schema id, as framing: confluent wants")
