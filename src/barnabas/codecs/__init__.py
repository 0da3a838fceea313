"""Codecs of values with a schema: schemas as Arrow types, values as rows, and rows as values.

A codec imports its library when it is created, so that flows of other formats do not need it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.codecs.framing import Frame


class BinaryFormat(Enum):
    AVRO = "avro"
    PROTOBUF = "protobuf"


class ValueDecoder(Protocol):
    """Decodes values to rows, one at a time.

    A row is a dict by column name. Timestamps and intervals are microseconds since 1970, dates are days, and maps are
    lists of pairs, as in Arrow.
    """

    @property
    def label(self) -> str:
        """A label for messages, such as `Avro of shop.Order`."""

    @property
    def columns(self) -> pa.Schema:
        """The columns; a field that cannot be null in a value is not nullable."""

    def decode(self, value: bytes) -> dict[str, Any]:
        """:raises ConversionError: It is not a value; other errors mean the same."""


class ReadRows(NamedTuple):
    """Rows of those values of a column that could be read together."""

    rows: pa.StructArray
    positions: npt.NDArray[np.int64]  #: of the values, ascending


@runtime_checkable
class ColumnReader(Protocol):
    """A decoder that can read many values at a time."""

    def read_column(self, values: pa.Array) -> ReadRows | None:
        """Read the values that a single one would be read as; None if that is not possible. Others are left out."""


class ValueCodec(ValueDecoder, Protocol):
    """Decodes values, and encodes rows as values."""

    def encode(self, row: dict[str, Any]) -> bytes:
        """:raises ConversionError: It cannot be encoded; other errors mean the same."""


@dataclass(frozen=True)
class CodecSpec:
    """All that a task needs to create a codec."""

    kind: BinaryFormat
    schema: bytes  #: JSON of Avro, or a FileDescriptorSet of Protobuf
    message: str  #: of Protobuf
    frame: Frame

    def codec(self) -> ValueCodec:
        """:raises SchemaError: The schema is invalid, or has a type that no column can have."""
        if self.kind is BinaryFormat.AVRO:
            from barnabas.codecs.avro import AvroCodec

            return AvroCodec(self.schema.decode(), self.frame)
        from barnabas.codecs.protobuf import ProtobufCodec

        return ProtobufCodec(self.schema, self.message, self.frame)
