"""Avro by fastavro.

A schema is first rewritten to an equivalent one on the wire, without name conflicts, logical types and enums: so
numbers stay numbers, which Arrow takes, and a negative enum index is not taken as an index from the end. A record adds
no bytes, so each branch of a union becomes a record whose name identifies the branch.
"""

import json
import uuid
from collections.abc import Callable
from decimal import Context, Decimal
from io import BytesIO
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import expand_schema

from barnabas.codecs import ReadRows
from barnabas.codecs.avro_columns import AvroColumnReader
from barnabas.codecs.avro_program import avro_program
from barnabas.codecs.columns import row_type
from barnabas.codecs.errors import NULL, ConversionError, SchemaError
from barnabas.codecs.framing import Frame
from barnabas.codecs.written_schemas import WrittenSchemas

_PRECISION_MAX = 38
_UUID_BYTES = 16
_EXACT = Context(prec=2 * _PRECISION_MAX)
#: The only field of a record that stands for a branch of a union.
_BRANCH = "v"
_UTC = pa.timestamp("us", "UTC")
_LOCAL = pa.timestamp("us")
_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}

Convert = Callable[[Any], Any]


class _Node(NamedTuple):
    """A part of a schema; converted values are never null."""

    type: pa.DataType
    wire: Any  #: its schema for fastavro
    read: Convert | None = None  #: from fastavro's value to a row's; None if they are equal
    write: Convert | None = None
    nullable: bool = False


class AvroCodec:
    """Values of one schema.

    :raises SchemaError: The schema is invalid, or has a type that no column can have.
    """

    def __init__(self, schema: str, frame: Frame) -> None:
        whole = _expanded(schema)
        if not isinstance(whole, dict) or whole.get("type") != "record":
            raise SchemaError(
                f"the schema is of {_shown(whole)}; it must be of a record, whose fields are columns"
            )
        builder = _Builder()
        node = builder.record(whole, "")
        assert node.read is not None, "a record is always read by its fields"
        assert node.write is not None, "and written"
        self._read, self._write = node.read, node.write
        self._wire = parse_schema(node.wire)
        self._names_branches = builder.has_unions
        self._frame = frame
        self._written = WrittenSchemas(frame.registry, schema, frame.own_id) if frame.registry else None
        self.label = f"Avro of {whole['name']}"
        self.columns = pa.schema(list(node.type))
        program = avro_program(whole, row_type(self))
        self._reader = None if program is None else AvroColumnReader(program, frame.header())

    def read_column(self, values: pa.Array) -> ReadRows | None:
        """Read many values at a time, as far as possible; None if it is not."""
        return None if self._reader is None else self._reader.read(values)

    def decode(self, value: bytes) -> dict[str, Any]:
        """Decode a datum to a row.

        :raises ConversionError: It is malformed.
        """
        body = self._opened(value)
        stream = BytesIO(body)
        try:
            datum = schemaless_reader(
                stream,
                self._wire,
                None,
                return_record_name=self._names_branches,
                return_record_name_override=self._names_branches,
            )
            rest = len(body) - stream.tell()
            if rest:
                raise ConversionError(f"{rest} of its {len(body)} bytes are left over")
            row: dict[str, Any] = self._read(datum)
        except EOFError:
            raise ConversionError(
                f"it ends too early, after {len(body)} bytes{self._frame.hint(value)}"
            ) from None
        except UnicodeDecodeError:
            raise ConversionError(f"a text in it is not UTF-8{self._frame.hint(value)}") from None
        except IndexError:
            raise ConversionError(f"a union in it has no such branch{self._frame.hint(value)}") from None
        except ConversionError as misfit:
            raise ConversionError(f"{misfit}{self._frame.hint(value)}") from None
        return row

    def _opened(self, value: bytes) -> bytes:
        if self._written is None:
            return self._frame.opened(value)
        return self._written.translated(*self._frame.parts(value))

    def encode(self, row: dict[str, Any]) -> bytes:
        """Encode a row as a datum.

        :raises ConversionError: It does not fit the schema.
        """
        stream = BytesIO()
        schemaless_writer(stream, self._wire, self._write(row))
        return self._frame.around(stream.getvalue())


def _expanded(text: str) -> Any:
    """Return a schema with full names, replaced by their definitions; a remaining name is recursive."""
    try:
        return expand_schema(json.loads(text))
    except json.JSONDecodeError as error:
        raise SchemaError(f"the schema is not valid JSON: {error}") from None
    except KeyError as error:
        raise SchemaError(f"the schema is not valid Avro: {error} is missing in one of its types") from None
    except Exception as error:  # fastavro documents no error types
        names = ""
        if type(error).__name__ == "UnknownType":
            names = "there is no type of the name "
        raise SchemaError(f"the schema is not valid Avro: {names}{error}") from None


class _Builder:
    """Builds the nodes of a schema; names on the wire are numbered, because a type may be used more than once."""

    def __init__(self) -> None:
        self._numbers = count()
        self.has_unions = False  #: of more types than null and another

    def _name(self) -> str:
        return f"n{next(self._numbers)}"

    def node(self, part: Any, path: str) -> _Node:
        """Return a part of the schema; `path` leads to it."""
        if isinstance(part, list):
            return self._union(part, path)
        kind = part["type"] if isinstance(part, dict) else part
        if isinstance(kind, dict | list):  # {"type": {"type": ...}}
            return self.node(kind, path)
        logical = part.get("logicalType") if isinstance(part, dict) else None
        match kind:
            case "record" | "error":
                return self.record(part, path)
            case "enum":
                return _enum(part["symbols"])
            case "fixed":
                return self._fixed(part, logical, path)
            case "array":
                return self._array(self.node(part["items"], f"{path}[]"))
            case "map":
                return self._map(self.node(part["values"], f"{path}[]"))
            case "null":
                raise SchemaError(
                    "null alone cannot be a column; it must be in a union with another type", path
                )
            case "bytes" if logical == "decimal":
                return _decimal(part, None, "bytes", path)
            case str() if kind in _PRIMITIVES:
                return _logical(kind, logical)
            case _:
                raise SchemaError(f"{kind} contains itself, which a column cannot", path)

    def record(self, part: dict[str, Any], path: str) -> _Node:
        fields: list[tuple[str, _Node]] = []
        for field in part["fields"]:
            name = field["name"]
            inner = f"{path}.{name}" if path else name
            if name.lower() in {other.lower() for other, _ in fields}:
                raise SchemaError("the name occurs twice in its record (case does not matter)", inner)
            fields.append((name, self.node(field["type"], inner)))
        if not fields:
            raise SchemaError(f"the record {part['name']} has no fields, so it cannot be a column", path)
        wire = {
            "type": "record",
            "name": self._name(),
            "fields": [{"name": name, "type": node.wire} for name, node in fields],
        }
        kind = pa.struct([pa.field(name, node.type, node.nullable) for name, node in fields])
        return _Node(kind, wire, _record_reader(fields), _record_writer(fields))

    def _fixed(self, part: dict[str, Any], logical: str | None, path: str) -> _Node:
        size = part["size"]
        if not isinstance(size, int) or size < 1:
            raise SchemaError(f"the size of fixed is {size}; it must be at least 1", path)
        wire = {"type": "fixed", "name": self._name(), "size": size}
        if logical == "decimal":
            return _decimal(part, size, wire, path)
        if logical == "uuid" and size == _UUID_BYTES:
            return _Node(pa.string(), wire, lambda value: str(uuid.UUID(bytes=value)), _uuid_bytes)

        def write(value: bytes) -> bytes:
            if len(value) != size:
                raise ConversionError(f"has {len(value)} bytes; it must have {size}")
            return value

        return _Node(pa.binary(), wire, None, write)

    def _array(self, item: _Node) -> _Node:
        def write(values: list[Any]) -> list[Any]:
            return [_written(item, value, f"[{index}]") for index, value in enumerate(values)]

        return _Node(
            pa.list_(pa.field("item", item.type, item.nullable)),
            {"type": "array", "items": item.wire},
            None if item.read is None else _each(item.read),
            write,
        )

    def _map(self, item: _Node) -> _Node:
        read = item.read or (lambda value: value)

        def write(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            return {key: _written(item, value, f"[{key}]") for key, value in pairs}

        return _Node(
            pa.map_(pa.string(), pa.field("value", item.type, item.nullable)),
            {"type": "map", "values": item.wire},
            lambda values: [(key, read(value)) for key, value in values.items()],
            write,
        )

    def _union(self, part: list[Any], path: str) -> _Node:
        nullable = "null" in [branch["type"] if isinstance(branch, dict) else branch for branch in part]
        others = [branch for branch in part if branch not in ("null", {"type": "null"})]
        if not others:
            raise SchemaError("a union of nothing but null cannot be a column; it must have a type", path)
        if len(others) == 1:
            return self._optional(part, self.node(others[0], path), nullable=nullable)
        self.has_unions = True
        members = [
            (f"member{index}", self.node(branch, f"{path}.member{index}"))
            for index, branch in enumerate(others)
        ]
        names = {self._name(): index for index in range(len(members))}
        branches = [
            {"type": "record", "name": name, "fields": [{"name": _BRANCH, "type": members[index][1].wire}]}
            for name, index in names.items()
        ]
        left = iter(branches)
        wire = [branch if branch in ("null", {"type": "null"}) else next(left) for branch in part]
        kind = pa.struct([pa.field(name, node.type) for name, node in members])
        read, write = _union_reader(members, names), _union_writer(members, names)
        return _Node(kind, wire, _unless_null(read) if nullable else read, write, nullable)

    def _optional(self, part: list[Any], node: _Node, *, nullable: bool) -> _Node:
        """Return a nullable type; a union with one branch is that branch."""
        wire = [branch if branch in ("null", {"type": "null"}) else node.wire for branch in part]
        write = node.write
        if write is not None and isinstance(node.wire, dict) and node.wire["type"] == "record":
            write = _named(node.wire["name"], write)
        read = node.read if node.read is None or not nullable else _unless_null(node.read)
        return _Node(node.type, wire, read, write, nullable)


def _unless_null(read: Convert) -> Convert:
    return lambda value: None if value is None else read(value)


def _each(read: Convert) -> Convert:
    return lambda values: [read(value) for value in values]


def _named(name: str, write: Convert) -> Convert:
    """Return a record in a union with its name, so that fastavro need not try the branches."""
    return lambda value: (name, write(value))


def _written(node: _Node, value: Any, step: str) -> Any:
    """Return a nested value for fastavro.

    :raises ConversionError: It cannot be encoded; the path begins with `step`.
    """
    if value is None:
        if node.nullable:
            return None
        raise ConversionError(NULL, step)
    if node.write is None:
        return value
    try:
        return node.write(value)
    except ConversionError as misfit:
        raise misfit.within(step) from None


def _record_reader(fields: list[tuple[str, _Node]]) -> Convert:
    converted = [(name, node.read) for name, node in fields if node.read is not None]

    def read(value: dict[str, Any]) -> dict[str, Any]:
        for name, convert in converted:
            value[name] = convert(value[name])
        return value

    return read


def _record_writer(fields: list[tuple[str, _Node]]) -> Convert:
    def write(row: dict[str, Any]) -> dict[str, Any]:
        return {name: _written(node, row.get(name), name) for name, node in fields}

    return write


def _union_reader(members: list[tuple[str, _Node]], names: dict[str, int]) -> Convert:
    def read(value: tuple[str, dict[str, Any]]) -> dict[str, Any]:
        branch, result = value
        name, node = members[names[branch]]
        inner = result[_BRANCH]
        return {name: inner if node.read is None else node.read(inner)}

    return read


def _union_writer(members: list[tuple[str, _Node]], names: dict[str, int]) -> Convert:
    branches = list(names)

    def write(value: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        given = [index for index, (name, _) in enumerate(members) if value.get(name) is not None]
        if len(given) != 1:
            names_text = ", ".join(name for name, _ in members)
            raise ConversionError(f"has {len(given)} of {names_text}; it must have exactly one")
        name, node = members[given[0]]
        return branches[given[0]], {_BRANCH: _written(node, value[name], name)}

    return write


def _enum(symbols: list[str]) -> _Node:
    """Return an enum, which is a number on the wire."""
    numbers = {symbol: number for number, symbol in enumerate(symbols)}

    def read(number: int) -> str:
        if not 0 <= number < len(symbols):
            raise ConversionError(
                f"an enum in it has the number {number}; {', '.join(symbols)} are 0 to {len(symbols) - 1}"
            )
        return symbols[number]

    def write(symbol: str) -> int:
        if symbol not in numbers:
            raise ConversionError(f"is {symbol!r}; it must be {' or '.join(symbols)}")
        return numbers[symbol]

    return _Node(pa.string(), "int", read, write)


def _logical(kind: str, logical: str | None) -> _Node:
    """Return a primitive type; other logical types are read as their primitive type, as Avro requires."""
    match kind, logical:
        case "int", "date":
            return _Node(pa.date32(), kind)
        case "long", "timestamp-micros":
            return _Node(_UTC, kind)
        case "long", "local-timestamp-micros":
            return _Node(_LOCAL, kind)
        case "long", "timestamp-millis":
            return _Node(_UTC, kind, _from_millis, _to_millis)
        case "long", "local-timestamp-millis":
            return _Node(_LOCAL, kind, _from_millis, _to_millis)
        case _:
            return _Node(_PRIMITIVES[kind], kind)


def _from_millis(value_ms: int) -> int:
    return value_ms * 1_000


def _to_millis(value_us: int) -> int:
    return value_us // 1_000


def _decimal(part: dict[str, Any], size: int | None, wire: Any, path: str) -> _Node:
    """Return a decimal: its unscaled value as big-endian two's complement."""
    precision, scale = part.get("precision"), part.get("scale", 0)
    if not isinstance(precision, int) or not 1 <= precision <= _PRECISION_MAX:
        raise SchemaError(f"the precision of decimal is {precision}; it must be 1 to {_PRECISION_MAX}", path)
    if not isinstance(scale, int):
        raise SchemaError(f"the scale of decimal is {scale}; it must be a number", path)

    def read(value: bytes) -> Decimal:
        digits = int.from_bytes(value, "big", signed=True)
        if abs(digits) >= 10**precision:
            raise ConversionError(f"a decimal in it has more than {precision} digits")
        return Decimal(digits).scaleb(-scale, _EXACT)

    def write(value: Decimal) -> bytes:
        digits = int(value.scaleb(scale, _EXACT))
        length = (digits if digits >= 0 else ~digits).bit_length() // 8 + 1
        return digits.to_bytes(length if size is None else size, "big", signed=True)

    return _Node(pa.decimal128(precision, scale), wire, read, write)


def _uuid_bytes(value: str) -> bytes:
    try:
        return uuid.UUID(value).bytes
    except ValueError:
        raise ConversionError(f"is {value!r}; it must be a uuid such as {uuid.UUID(int=0)}") from None


def _shown(part: Any) -> str:
    kind = part.get("type") if isinstance(part, dict) else part
    return "a union" if isinstance(kind, list) else str(kind)
