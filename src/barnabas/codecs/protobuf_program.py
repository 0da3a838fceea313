"""The tables by which a kernel reads Protobuf messages of one type."""

from collections.abc import Sequence
from enum import IntEnum, auto
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Types


class ProtobufOperation(IntEnum):
    """How the kernel reads a value."""

    VARINT = 0  #: 64 bits
    SIGNED_32 = auto()  #: the lower half of a varint
    UNSIGNED_32 = auto()
    ZIGZAG = auto()
    ZIGZAG_32 = auto()
    BOOLEAN = auto()
    FIXED_64 = auto()
    SIGNED_FIXED_32 = auto()
    UNSIGNED_FIXED_32 = auto()
    BYTES = auto()
    MESSAGE = auto()


_OPERATIONS: dict[int, ProtobufOperation] = {
    Types.TYPE_DOUBLE: ProtobufOperation.FIXED_64,
    Types.TYPE_FLOAT: ProtobufOperation.SIGNED_FIXED_32,
    Types.TYPE_INT64: ProtobufOperation.VARINT,
    Types.TYPE_UINT64: ProtobufOperation.VARINT,
    Types.TYPE_INT32: ProtobufOperation.SIGNED_32,
    Types.TYPE_FIXED64: ProtobufOperation.FIXED_64,
    Types.TYPE_FIXED32: ProtobufOperation.UNSIGNED_FIXED_32,
    Types.TYPE_BOOL: ProtobufOperation.BOOLEAN,
    Types.TYPE_STRING: ProtobufOperation.BYTES,
    Types.TYPE_BYTES: ProtobufOperation.BYTES,
    Types.TYPE_UINT32: ProtobufOperation.UNSIGNED_32,
    Types.TYPE_ENUM: ProtobufOperation.SIGNED_32,
    Types.TYPE_SFIXED32: ProtobufOperation.SIGNED_FIXED_32,
    Types.TYPE_SFIXED64: ProtobufOperation.FIXED_64,
    Types.TYPE_SINT32: ProtobufOperation.ZIGZAG_32,
    Types.TYPE_SINT64: ProtobufOperation.ZIGZAG,
    Types.TYPE_MESSAGE: ProtobufOperation.MESSAGE,
}


#: Protobuf itself refuses messages that are nested more deeply.
DEPTH_MAX = 100


class FieldRow(NamedTuple):
    """A row of the table of fields."""

    number: int
    operation: ProtobufOperation
    column: int  #: of its values
    level: int  #: of its values
    list_column: int = -1  #: of a repeated field; -1 for others
    list_level: int = -1  #: of the column of lists
    message: int = -1  #: of a field with messages; -1 for others


class MessageRow(NamedTuple):
    """A row of the table of messages: one for each field with messages, because each has its own columns."""

    first_field: int
    fields_count: int
    is_entry: bool  #: of a map: Protobuf's parser may drop entries with unknown fields


class ProtobufColumn(NamedTuple):
    """A part of a message that becomes an Arrow array."""

    descriptor: Any  #: of a field; of the whole message for the root
    type: pa.DataType
    at: int
    level: int
    nullable: bool = False  #: whether a missing value is null and not the default
    required: bool = False
    parts: tuple["ProtobufColumn", ...] = ()  #: fields of a message, items, or keys and values
    choices: tuple[tuple[int, ...], ...] = ()  #: indexes of parts of which one at most may have a value


class ProtobufTables(NamedTuple):
    """The fields and messages as the kernel reads them."""

    fields: npt.NDArray[np.int64]  #: by field and field of `FieldRow`; the fields of a message are neighbours
    messages: npt.NDArray[np.int64]  #: by message and field of `MessageRow`; the first is the whole


class ProtobufProgram(NamedTuple):
    """How messages of one type are read, and which arrays they become."""

    root: ProtobufColumn
    tables: ProtobufTables
    levels: npt.NDArray[np.int64]  #: of each column
    levels_count: int


def protobuf_program(descriptor: Any, row_type: pa.StructType) -> ProtobufProgram | None:
    """Return the program of a message; None if its values must be read singly.

    :param descriptor: Of a message that does not contain itself.
    :param row_type: Of its rows; everything is nullable.
    """
    builder = _Builder()
    try:
        root, _ = builder.message(descriptor, descriptor, row_type, 0, 0)
    except _Unsupported:
        return None
    firsts = np.cumsum([0, *(len(rows) for rows, _ in builder.messages)])
    messages = [
        MessageRow(int(first), len(rows), is_entry)
        for first, (rows, is_entry) in zip(firsts, builder.messages, strict=False)
    ]
    fields = [row for rows, _ in builder.messages for row in rows]
    tables = ProtobufTables(np.array(fields, np.int64), np.array(messages, np.int64))
    return ProtobufProgram(root, tables, np.array(builder.levels, np.int64), builder.levels_count)


class _Unsupported(Exception):
    """The kernel has no operation for a type."""


class _Builder:
    def __init__(self) -> None:
        self.levels: list[int] = []
        self.levels_count = 1
        self.messages: list[tuple[list[FieldRow], bool]] = []  #: fields, and whether it is an entry of a map

    def message(
        self, descriptor: Any, message: Any, kind: pa.DataType, level: int, depth: int
    ) -> tuple[ProtobufColumn, int]:
        """Add a message; return its column and its number.

        :param descriptor: Of the field, for its column.
        """
        if depth == DEPTH_MAX:
            raise _Unsupported
        number, rows = len(self.messages), list[FieldRow]()
        self.messages.append((rows, message.GetOptions().map_entry))
        at = self._new_column(level)
        parts = [
            self._field(field, part, level, rows, depth)
            for field, part in zip(message.fields, _types(message, kind), strict=True)
        ]
        choices = tuple(tuple(field.index for field in oneof.fields) for oneof in message.oneofs)
        return ProtobufColumn(descriptor, kind, at, level, parts=tuple(parts), choices=choices), number

    def _field(
        self, field: Any, kind: pa.DataType, level: int, rows: list[FieldRow], depth: int
    ) -> ProtobufColumn:
        if not field.is_repeated:
            column, row = self._value(field, kind, level, depth)
            rows.append(row)
            nullable = field.has_presence and not field.is_required
            return column._replace(nullable=nullable, required=field.is_required)
        at, items_level = self._new_column(level), self.levels_count
        self.levels_count += 1
        if pa.types.is_map(kind):
            entry = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
            items, row = self._value(field, entry, items_level, depth)
            # those that are missing have their defaults, a message is empty
            parts = [part._replace(nullable=False) for part in items.parts]
        else:
            items, row = self._value(field, kind.value_type, items_level, depth)
            parts = [items]
        rows.append(row._replace(list_column=at, list_level=level))
        return ProtobufColumn(field, kind, at, level, parts=tuple(parts))

    def _value(
        self, field: Any, kind: pa.DataType, level: int, depth: int
    ) -> tuple[ProtobufColumn, FieldRow]:
        operation = _OPERATIONS.get(field.type)
        if operation is None:
            raise _Unsupported
        if operation is ProtobufOperation.MESSAGE:
            column, message = self.message(field, field.message_type, kind, level, depth + 1)
            return column, FieldRow(field.number, operation, column.at, level, message=message)
        column = ProtobufColumn(field, kind, self._new_column(level), level)
        return column, FieldRow(field.number, operation, column.at, level)

    def _new_column(self, level: int) -> int:
        self.levels.append(level)
        return len(self.levels) - 1


def _types(message: Any, kind: pa.DataType) -> Sequence[pa.DataType]:
    """Return the types of a message's fields; some messages are no structs in rows."""
    if pa.types.is_struct(kind):
        return [field.type for field in kind]
    return [pa.int64(), pa.int32()] if pa.types.is_temporal(kind) else [kind]
