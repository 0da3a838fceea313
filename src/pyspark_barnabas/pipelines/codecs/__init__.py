"""Binary formats of records: what a schema is in Spark's types, values as rows and rows as values. No JVM is needed.

The libraries are imported when a codec is made, so that flows of other formats do without them.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from pyspark.sql.types import StructType

from pyspark_barnabas.pipelines.codecs.framing import Frame


class BinaryFormat(Enum):
    """Which format."""

    AVRO = "avro"
    PROTOBUF = "protobuf"


class ValueCodec(Protocol):
    """Values to rows and back, one at a time.

    A row is a dict by the names of columns. In it, timestamps and intervals are microseconds since 1970, dates days,
    and maps lists of pairs, as Arrow takes and gives them.
    """

    @property
    def label(self) -> str:
        """For people: what a value is of, such as `Avro of shop.Order`."""

    @property
    def columns(self) -> StructType:
        """Of the rows; what cannot be null in values cannot be in these."""

    def decode(self, value: bytes) -> dict[str, Any]:
        """:raises Misfit: It is none; other errors say that as well."""

    def encode(self, row: dict[str, Any]) -> bytes:
        """:raises Misfit: It cannot be one; other errors say that as well."""


@dataclass(frozen=True)
class CodecSpec:
    """All that a task needs to know to make a codec."""

    kind: BinaryFormat
    schema: bytes  #: JSON of Avro, or a FileDescriptorSet of Protobuf
    message: str  #: of Protobuf
    frame: Frame

    def codec(self) -> ValueCodec:
        """:raises SchemaError: The schema cannot be read, or has what no column can be."""
        if self.kind is BinaryFormat.AVRO:
            from pyspark_barnabas.pipelines.codecs.avro import AvroCodec

            return AvroCodec(self.schema.decode(), self.frame)
        from pyspark_barnabas.pipelines.codecs.protobuf import ProtobufCodec

        return ProtobufCodec(self.schema, self.message, self.frame)
