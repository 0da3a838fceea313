"""Protobuf by its own package, from descriptors: no code is generated.

A field with presence is null if it is not set; other fields are never null.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.message import DecodeError

from barnabas.codecs import ReadRows
from barnabas.codecs.closed_enums import ClosedEnums
from barnabas.codecs.columns import row_type
from barnabas.codecs.errors import NULL, ConversionError, SchemaError
from barnabas.codecs.framing import Frame
from barnabas.codecs.protobuf_columns import ProtobufColumnReader
from barnabas.codecs.protobuf_program import protobuf_program
from barnabas.registry.codecs.errors import MalformedValue
from barnabas.registry.codecs.framing import read_message_indexes, written_message_indexes
from barnabas.registry.codecs.message_indexes import message_at, message_indexes

_Types = descriptor_pb2.FieldDescriptorProto
_SCALARS: dict[int, pa.DataType] = {
    _Types.TYPE_DOUBLE: pa.float64(),
    _Types.TYPE_FLOAT: pa.float32(),
    _Types.TYPE_INT64: pa.int64(),
    _Types.TYPE_SINT64: pa.int64(),
    _Types.TYPE_SFIXED64: pa.int64(),
    _Types.TYPE_INT32: pa.int32(),
    _Types.TYPE_SINT32: pa.int32(),
    _Types.TYPE_SFIXED32: pa.int32(),
    _Types.TYPE_UINT32: pa.int64(),
    _Types.TYPE_FIXED32: pa.int64(),
    _Types.TYPE_BOOL: pa.bool_(),
    _Types.TYPE_STRING: pa.string(),
    _Types.TYPE_BYTES: pa.binary(),
}
_UNSIGNED_64 = (_Types.TYPE_UINT64, _Types.TYPE_FIXED64)
_UNSIGNED_64_DIGITS = 20
_MESSAGES = (_Types.TYPE_MESSAGE, _Types.TYPE_GROUP)
#: Files that are often missing in descriptor sets without imports.
_KNOWN_FILES = {
    module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb
    for module in (
        any_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
}
_WRAPPERS = {descriptor.full_name for descriptor in wrappers_pb2.DESCRIPTOR.message_types_by_name.values()}
_SHOWN_NAMES_MAX = 10
_NANOS = 1_000_000_000
_MICROS = 1_000_000

Convert = Callable[[Any], Any]


class _Value(NamedTuple):
    """The value of a field, or of each item of a repeated one."""

    type: pa.DataType
    read: Convert | None = None  #: from protobuf's value to a row's; None if they are equal
    write: Convert | None = None  #: the reverse
    fill: Callable[[Any, Any], None] | None = None  #: for messages, instead of `write`: message, row's value


class _Field(NamedTuple):
    """A field of a message as a column."""

    name: str
    type: pa.DataType
    nullable: bool
    read: Convert  #: from a message
    write: Callable[[Any, Any], None]  #: into a message, for values that are not null


class ProtobufCodec:
    """Values of one message.

    :param schema: A FileDescriptorSet.
    :param name: The full name of the message.
    :raises SchemaError: There is no such message, or it has a type that no column can have.
    """

    def __init__(self, schema: bytes, name: str, frame: Frame) -> None:
        descriptor = _descriptor(schema, name)
        self._message = message_factory.GetMessageClass(descriptor)
        value = _struct(descriptor, "", ())
        assert value.read is not None, "and is read"
        assert value.fill is not None, "and filled"
        self._read, self._fill = value.read, value.fill
        self._frame = frame
        self._indexes = message_indexes(descriptor)
        self.label = f"Protobuf of {name}"
        self.columns = pa.schema(list(value.type))
        self._reader = self._column_reader(descriptor)

    def _column_reader(self, descriptor: Any) -> ProtobufColumnReader | None:
        program = protobuf_program(descriptor, row_type(self))
        indexes = written_message_indexes(self._indexes) if self._frame.confluent else b""
        return None if program is None else ProtobufColumnReader(program, self._frame.header().plus(indexes))

    def read_column(self, values: pa.Array) -> ReadRows | None:
        """Read many values at a time, as far as possible; None if it is not."""
        return None if self._reader is None else self._reader.read(values)

    def decode(self, value: bytes) -> dict[str, Any]:
        """Decode a message to a row.

        :raises ConversionError: It is malformed.
        """
        body = self._opened(value)
        message = self._message()
        try:
            message.ParseFromString(body)
        except DecodeError as error:
            raise ConversionError(f"it cannot be parsed: {error}{self._frame.hint(value)}") from None
        missing = message.FindInitializationErrors()
        if missing:
            raise ConversionError(f"it has no {', '.join(missing)}, which the schema requires")
        row: dict[str, Any] = self._read(message)
        return row

    def encode(self, row: dict[str, Any]) -> bytes:
        """Encode a row as a message.

        :raises ConversionError: It does not fit the message.
        """
        message = self._message()
        self._fill(message, row)
        body: bytes = message.SerializeToString(deterministic=True)
        if not self._frame.confluent:
            return body
        return self._frame.around(written_message_indexes(self._indexes) + body)

    def _opened(self, value: bytes) -> bytes:
        body = self._frame.opened(value)
        if not self._frame.confluent:
            return body
        try:
            indexes, start = read_message_indexes(body)
        except MalformedValue as error:
            raise ConversionError(f"{error}, as framing: confluent requires") from None
        if tuple(indexes) != self._indexes:
            name = self._message.DESCRIPTOR.full_name
            raise ConversionError(
                f"it is message {_path_text(indexes)} of its file; {name} is {_path_text(self._indexes)}"
            )
        return body[start:]


def _path_text(indexes: Sequence[int]) -> str:
    return ".".join(map(str, indexes))


def _descriptor(schema: bytes, name: str) -> Any:
    try:
        files = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(schema).file}
    except DecodeError:
        raise SchemaError(
            "it is not a valid descriptor set; create one with protoc --include_imports --descriptor_set_out=FILE"
        ) from None
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(file: str, wanted_by: str) -> None:
        if file in added:
            return
        added.add(file)
        if file in files:
            for other in files[file].dependency:
                add(other, file)
        elif file not in _KNOWN_FILES:
            raise SchemaError(f"{wanted_by} imports {file}, which it lacks: use protoc --include_imports")
        content = files[file].SerializeToString() if file in files else _KNOWN_FILES[file]
        try:
            pool.AddSerializedFile(content)
        except TypeError as error:
            raise SchemaError(f"{file} is not a valid descriptor: {error}") from None

    for file_proto in files:
        add(file_proto, file_proto)
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        names = [
            f"{file.package}.{file_proto.name}".lstrip(".")
            for file in files.values()
            for file_proto in file.message_type
        ]
        names_text = ", ".join(names[:_SHOWN_NAMES_MAX]) + (", ..." if len(names) > _SHOWN_NAMES_MAX else "")
        raise SchemaError(f"there is no message {name}; there are {names_text or 'none'}") from None


def message_name(file: Any, indexes: Sequence[int]) -> str | None:
    """Return the full name of a message by its indexes in a file; None if there is none."""
    found = message_at(file, indexes)
    return None if found is None else found.full_name


def _struct(descriptor: Any, path: str, within: tuple[str, ...]) -> _Value:
    """Return a message as a struct; `within` are the messages around it."""
    if descriptor.full_name in within:
        raise SchemaError(f"{descriptor.full_name} contains itself, which a column cannot", path)
    fields: list[_Field] = []
    for each in descriptor.fields:
        inner = f"{path}.{each.name}" if path else each.name
        if each.name.lower() in {other.name.lower() for other in fields}:
            raise SchemaError("the name occurs twice in its message (case does not matter)", inner)
        fields.append(_field(each, inner, (*within, descriptor.full_name)))
    if not fields:
        raise SchemaError(f"the message {descriptor.full_name} has no fields, so it cannot be a column", path)
    choices = [[each.name for each in oneof.fields] for oneof in descriptor.oneofs]
    closed_enums = ClosedEnums(descriptor)

    def read(message: Any) -> dict[str, Any]:
        for enum, number in closed_enums.unknown(message) if closed_enums else ():
            raise _unknown_number(enum, number)
        return {field.name: field.read(message) for field in fields}

    def fill(message: Any, row: dict[str, Any]) -> None:
        for names in choices:
            set_names = [name for name in names if row.get(name) is not None]
            if len(set_names) > 1:
                raise ConversionError(
                    f"{' and '.join(set_names)} are of one oneof, of which one at most may be not null"
                )
        for field in fields:
            _write_field(message, field, row.get(field.name))

    kind = pa.struct([pa.field(field.name, field.type, field.nullable) for field in fields])
    return _Value(kind, read, None, fill)


def _write_field(message: Any, field: _Field, value: Any) -> None:
    if value is None:
        if not field.nullable:
            raise ConversionError(NULL, field.name)
        return
    try:
        field.write(message, value)
    except ConversionError as misfit:
        raise misfit.within(field.name) from None
    except (TypeError, ValueError) as error:
        raise ConversionError(f"is {value!r}: {error}", field.name) from None


def _field(descriptor: Any, path: str, within: tuple[str, ...]) -> _Field:
    entry = descriptor.message_type
    if descriptor.is_repeated and entry is not None and entry.GetOptions().map_entry:
        key, value = (_value(entry.fields_by_name[part], f"{path}[]", within) for part in ("key", "value"))
        return _map_field(descriptor.name, key, value)
    value = _value(descriptor, f"{path}[]" if descriptor.is_repeated else path, within)
    if descriptor.is_repeated:
        return _repeated_field(descriptor.name, value)
    return _single_field(descriptor, value)


def _single_field(descriptor: Any, value: _Value) -> _Field:
    name, nullable = descriptor.name, descriptor.has_presence and not descriptor.is_required
    convert = value.read or _same

    def read(message: Any) -> Any:
        return None if nullable and not message.HasField(name) else convert(getattr(message, name))

    def write(message: Any, found: Any) -> None:
        if value.fill is None:
            setattr(message, name, (value.write or _same)(found))
            return
        inner = getattr(message, name)
        inner.SetInParent()
        value.fill(inner, found)

    return _Field(name, value.type, nullable, read, write)


def _repeated_field(name: str, value: _Value) -> _Field:
    convert = value.read or _same

    def read(message: Any) -> list[Any]:
        return [convert(item) for item in getattr(message, name)]

    def write(message: Any, found: list[Any]) -> None:
        items = getattr(message, name)
        for index, item in enumerate(found):
            item_path = f"[{index}]"
            if value.fill is None:
                items.append(_item(value, item, item_path))
            else:
                _fill_item(value.fill, items.add, item, item_path)

    return _Field(name, pa.list_(pa.field("item", value.type, False)), False, read, write)


def _map_field(name: str, key: _Value, value: _Value) -> _Field:
    read_key, read_value = key.read or _same, value.read or _same

    def read(message: Any) -> list[tuple[Any, Any]]:
        """Return sorted entries, because the wire has no order, and a repeated batch must have the same rows."""
        return [
            (read_key(each), read_value(found))
            for each, found in sorted(getattr(message, name).items(), key=_key)
        ]

    def write(message: Any, entries: list[tuple[Any, Any]]) -> None:
        items = getattr(message, name)
        for entry, inner in entries:
            position, item_path = _item(key, entry, "a key"), f"[{entry}]"
            if value.fill is None:
                items[position] = _item(value, inner, item_path)
            else:
                _fill_item(value.fill, partial(items.__getitem__, position), inner, item_path)

    return _Field(name, pa.map_(key.type, pa.field("value", value.type, False)), False, read, write)


def _same(value: Any) -> Any:
    return value


def _key(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _item(value: _Value, found: Any, step: str) -> Any:
    if found is None:
        raise ConversionError(NULL, step)
    try:
        return (value.write or _same)(found)
    except ConversionError as misfit:
        raise misfit.within(step) from None


def _fill_item(fill: Callable[[Any, Any], None], create: Callable[[], Any], value: Any, step: str) -> None:
    if value is None:
        raise ConversionError(NULL, step)
    try:
        fill(create(), value)
    except ConversionError as misfit:
        raise misfit.within(step) from None


def _value(descriptor: Any, path: str, within: tuple[str, ...]) -> _Value:
    kind = descriptor.type
    if kind in _MESSAGES:
        return _message_value(descriptor.message_type, path, within)
    if kind == _Types.TYPE_ENUM:
        return _enum(descriptor.enum_type)
    if kind in _UNSIGNED_64:
        return _Value(pa.decimal128(_UNSIGNED_64_DIGITS, 0), Decimal, int)
    return _Value(_SCALARS[kind])


def _message_value(descriptor: Any, path: str, within: tuple[str, ...]) -> _Value:
    match descriptor.full_name:
        case "google.protobuf.Timestamp":
            return _Value(pa.timestamp("us", "UTC"), _read_timestamp, None, _fill_timestamp)
        case "google.protobuf.Duration":
            return _Value(pa.duration("us"), _read_duration, None, _fill_duration)
        case name if name in _WRAPPERS:
            return _wrapper(_value(descriptor.fields_by_name["value"], path, within))
        case _:
            return _struct(descriptor, path, within)


def _wrapper(inner: _Value) -> _Value:
    """Return a wrapper message as its value, null if the message is not set."""
    convert, back = inner.read or _same, inner.write or _same

    def fill(message: Any, value: Any) -> None:
        message.value = back(value)

    return _Value(inner.type, lambda message: convert(message.value), None, fill)


def _enum(descriptor: Any) -> _Value:
    names: dict[int, str] = {number: value.name for number, value in descriptor.values_by_number.items()}
    numbers: dict[str, int] = {name: value.number for name, value in descriptor.values_by_name.items()}

    def read(number: int) -> str:
        if number not in names:
            raise _unknown_number(descriptor, number)
        return names[number]

    def write(name: str) -> int:
        if name not in numbers:
            raise ConversionError(f"is {name!r}; it must be {' or '.join(numbers)}")
        return numbers[name]

    return _Value(pa.string(), read, write)


def _unknown_number(enum: Any, number: int) -> ConversionError:
    known = ", ".join(f"{name} {value.number}" for name, value in enum.values_by_name.items())
    return ConversionError(f"{enum.full_name} in it has the number {number}; the schema knows {known}")


def _read_timestamp(message: Any) -> int:
    if not 0 <= message.nanos < _NANOS:
        raise ConversionError(f"a Timestamp in it has {message.nanos} nanos; 0 to {_NANOS - 1} are valid")
    micros: int = message.seconds * _MICROS + message.nanos // 1_000
    return micros


def _fill_timestamp(message: Any, value_us: int) -> None:
    message.seconds, rest_us = divmod(value_us, _MICROS)
    message.nanos = rest_us * 1_000


def _read_duration(message: Any) -> int:
    """Return whole microseconds, rounded towards zero."""
    nanos = message.seconds * _NANOS + message.nanos
    micros: int = nanos // 1_000 if nanos >= 0 else -(-nanos // 1_000)
    return micros


def _fill_duration(message: Any, value_us: int) -> None:
    """Set seconds and nanos, which must have the same sign."""
    sign = 1 if value_us >= 0 else -1
    seconds, rest_us = divmod(abs(value_us), _MICROS)
    message.seconds, message.nanos = sign * seconds, sign * rest_us * 1_000
