"""Compiles declared messages into straight-line Python, once per message and version, on first use.

Adjacent fixed-size fields become one `struct` call. Records are never copied: reading slices the memoryview, and
`encode_parts` returns them as separate buffers.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any, TypeVar, cast

from barnabas.base.buffers import Buffer
from barnabas.wire import primitives
from barnabas.wire.schema import Field, Message, Struct

MessageT = TypeVar("MessageT", bound=Message)

#: (position in the header bytes at which record data is inserted, the data)
Splice = tuple[int, Buffer]

FIXED = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "float64": "d", "uuid": "16s",
}  # fmt: skip

#: Smaller repeated elements are copied: a splice costs about 200 bytes itself.
SPLICED_BYTES_MIN = 1 << 10

_RAISED_BY_BAD_BYTES = (ValueError, IndexError, struct.error)


StructT = TypeVar("StructT", bound=Struct)


class Repeated(list[StructT]):
    """A list of structs that occurs many times in one response: it is encoded once. It must not change afterwards."""

    def __init__(self, structs: Iterable[StructT]) -> None:
        super().__init__(structs)
        self._encoded: dict[int, bytes] = {}  #: by version
        self._runs: Sequence[Repeated[StructT]] = ()  #: lists that it consists of

    @classmethod
    def of_runs(cls, runs: Sequence["Repeated[StructT]"]) -> "Repeated[StructT]":
        """Join lists, each of which is encoded once."""
        joined = cls(chain.from_iterable(runs))
        joined._runs = runs
        return joined

    def write(
        self,
        version: int,
        write: Callable[[StructT, bytearray, list[Splice]], None],
        out: bytearray,
        splices: list[Splice],
    ) -> None:
        """Append the elements, encoded by `write`; long ones are spliced in, so that a response has them once."""
        for run in self._runs or (self,):
            encoded = run.encoded(version, write)
            if len(encoded) < SPLICED_BYTES_MIN:
                out += encoded
            else:
                splices.append((len(out), encoded))

    def encoded(self, version: int, write: Callable[[StructT, bytearray, list[Splice]], None]) -> bytes:
        """Return the elements, encoded by `write` at a version; they must not contain record data."""
        encoded = self._encoded.get(version)
        if encoded is None:
            out, splices = bytearray(), list[Splice]()
            for struct_ in self:
                write(struct_, out, splices)
            assert not splices, "record data is spliced in by its place in the message"
            encoded = self._encoded[version] = bytes(out)
        return encoded


class DecodeError(Exception):
    """The bytes are not a valid message."""


class _Allowance:
    """A limit on the number of elements in a message."""

    def __init__(self, elements_max: int) -> None:
        self._elements_max = self._left = elements_max

    def take(self, count: int) -> None:
        """Count elements before they are read."""
        self._left -= count
        if self._left < 0:
            message = f"it has more than {self._elements_max} elements"
            raise ValueError(message)


Count = Callable[[int], None]


def decode(
    message: type[MessageT],
    version: int,
    buffer: Buffer,
    position: int = 0,
    elements_max: int | None = None,
) -> MessageT:
    """Decode one message; fields that its version lacks get their default. Record data is a slice of `buffer`.

    :param elements_max: Limit of the elements in all arrays and tagged sections together.
    :raises DecodeError: When the bytes are incomplete or invalid.
    """
    # An element takes at least one byte, so a short message needs no counting.
    count = None if elements_max is None or len(buffer) <= elements_max else _Allowance(elements_max).take
    try:
        value, _ = reader(message, version)(buffer, position, count)
    except _RAISED_BY_BAD_BYTES as error:
        text = f"{message.__name__} version {version} cannot be read: {error}"
        raise DecodeError(text) from error
    return cast("MessageT", value)


def encode(message: Message, version: int, out: bytearray | None = None) -> bytearray:
    """Append one message to `out` (or to new bytes), without fields that its version lacks."""
    out = bytearray() if out is None else out
    splices: list[Splice] = []
    start = len(out)
    writer(type(message), version)(message, out, splices)
    if not splices:
        return out
    parts = _spliced(out, splices)
    out = bytearray(b"".join(parts))
    assert len(out) >= start
    return out


def encode_parts(message: Message, version: int, out: bytearray) -> list[Buffer]:
    """Encode as `encode`, but to a list of buffers, so that record data is not copied."""
    splices: list[Splice] = []
    writer(type(message), version)(message, out, splices)
    return _spliced(out, splices)


def _spliced(out: bytearray, splices: list[Splice]) -> list[Buffer]:
    if not splices:
        return [out]
    parts: list[Buffer] = []
    view = memoryview(out)
    position = 0
    for at, data in splices:
        parts.append(view[position:at])
        parts.append(data)
        position = at
    if position < len(out):
        parts.append(view[position:])
    return parts


@cache
def reader(message: type[Message], version: int) -> Callable[[Buffer, int, Count | None], tuple[Struct, int]]:
    """Return the function that reads `message` at `version`: (buffer, position, count) -> (message, end position).

    `count` is called with the number of elements of an array before they are read.
    """
    assert version in message.VERSIONS, (message, version)
    return _ReaderCompiler(version, version in message.FLEXIBLE).compile(message)


@cache
def writer(message: type[Message], version: int) -> Callable[[Struct, bytearray, list[Splice]], None]:
    """Return the function that writes `message` at `version`: (message, out, splices) -> None."""
    assert version in message.VERSIONS, (message, version)
    return _WriterCompiler(version, version in message.FLEXIBLE).compile(message)


@cache
def part_writer(
    part: type[Struct], message: type[Message], version: int
) -> Callable[[Any, bytearray, list[Splice]], None]:
    """Compile the writer of a part of `message`, for code that writes the rest itself."""
    return _WriterCompiler(version, version in message.FLEXIBLE).compile(part)


class _Compiler:
    """Common parts of reading and writing: the fields of a version in order, and the scope of compiled names."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {}

    def compile(self, owner: type[Struct]) -> Callable[..., Any]:
        """Compile the function of one struct and of the structs within it."""
        raise NotImplementedError

    def untagged(self, owner: type[Struct]) -> list[Field]:
        return [f for f in owner.FIELDS if self.version in f.versions and not self.is_tagged(f)]

    def tagged(self, owner: type[Struct]) -> list[Field]:
        fields = [f for f in owner.FIELDS if self.version in f.versions and self.is_tagged(f)]
        return sorted(fields, key=lambda field: field.tag or 0)

    def is_tagged(self, field: Field) -> bool:
        return field.tag is not None and self.version in field.tagged

    def is_nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def bind(self, value: Any) -> str:
        """Return a name for `value` in the compiled function's scope."""
        name = f"_{len(self.scope)}"
        self.scope[name] = value
        return name

    def nested(self, field: Field) -> str:
        assert field.struct is not None
        return self.bind(type(self)(self.version, self.flexible).compile(field.struct))

    def runs(self, fields: list[Field]) -> list[list[Field]]:
        """Group adjacent fields of fixed size; every other field is a group by itself."""
        runs: list[list[Field]] = []
        for field in fields:
            fixed = field.kind in FIXED and not field.is_array
            if fixed and runs and runs[-1][0].kind in FIXED and not runs[-1][0].is_array:
                runs[-1].append(field)
            else:
                runs.append([field])
        return runs

    def finish(self, signature: str) -> Callable[..., Any]:
        source = f"def compiled({signature}):\n " + "\n ".join(self.lines or ["pass"])
        exec(source, self.scope)  # straight-line code generated from the declaration
        return cast("Callable[..., Any]", self.scope["compiled"])


class _ReaderCompiler(_Compiler):
    def compile(self, owner: type[Struct]) -> Callable[..., Any]:
        for run in self.runs(self.untagged(owner)):
            self.read_run(run)
        present = {field.name for field in self.untagged(owner)}
        if self.flexible:
            self.read_tagged(self.tagged(owner))
            present |= {field.name for field in self.tagged(owner)}
        arguments = ", ".join(f"{name}={name}" for name in sorted(present))
        self.lines.append(f"return {self.bind(owner)}({arguments}), _at")
        return self.finish("buffer, _at, _counted")

    def read_run(self, run: list[Field]) -> None:
        first = run[0]
        if first.kind in FIXED and not first.is_array:
            layout = struct.Struct(">" + "".join(FIXED[field.kind] for field in run))
            targets = "".join(f"{field.name}, " for field in run)
            self.lines += [
                f"{targets}= {self.bind(layout.unpack_from)}(buffer, _at)",
                f"_at += {layout.size}",
            ]
        else:
            self.lines += self.read_field(first)

    def read_field(self, field: Field) -> list[str]:
        nullable = self.is_nullable(field)
        if field.is_array:
            return self.read_array(field, nullable)
        if field.kind == "struct":
            return self.read_struct(field, nullable)
        return [f"{field.name}, _at = {self.read_element(field, nullable)}"]

    def read_element(self, field: Field, nullable: bool) -> str:
        """Return the call that reads one value of the field's kind."""
        if field.kind == "struct":
            return f"{self.nested(field)}(buffer, _at, _counted)"
        if field.kind == "string":
            read = primitives.STRING_READERS[self.flexible, nullable]
        elif field.kind in ("bytes", "records"):
            read = primitives.BYTES_READERS[self.flexible, nullable]
        else:
            read = _fixed_reader(FIXED[field.kind])
        return f"{self.bind(read)}(buffer, _at)"

    def read_struct(self, field: Field, nullable: bool) -> list[str]:
        name, read = field.name, self.read_element(field, nullable)
        if not nullable:
            return [f"{name}, _at = {read}"]
        # A byte of -1 marks null (KIP-893), but 0 within a tagged field.
        there = "buffer[_at - 1]" if self.is_tagged(field) else "buffer[_at - 1] < 0x80"
        return [f"{name} = None", "_at += 1", f"if {there}:", f" {name}, _at = {read}"]

    def read_array(self, field: Field, nullable: bool) -> list[str]:
        name = field.name
        read_count = primitives.read_compact_size if self.flexible else primitives.read_size
        lines = [f"_count, _at = {self.bind(read_count)}(buffer, _at)"]
        if nullable:
            lines += ["if _count < 0:", f" {name} = None", "else:"]
        else:
            lines += ["if _count < 0:", f" raise ValueError('null where the array {name} must be')", "else:"]
        lines.append(" if _counted: _counted(_count)")
        if field.kind in FIXED and field.kind != "uuid":
            code = FIXED[field.kind]
            size = struct.calcsize(">" + code)
            unpack = self.bind(struct.unpack_from)
            lines += [
                f" {name} = list({unpack}(f'>{{_count}}{code}', buffer, _at))",
                f" _at += {size} * _count",
            ]
        else:
            lines += [
                f" {name} = []",
                " for _ in range(_count):",
                f"  _item, _at = {self.read_element(field, nullable=False)}",
                f"  {name}.append(_item)",
            ]
        return lines

    def read_tagged(self, fields: list[Field]) -> None:
        """Read known tagged fields and skip others (KIP-482)."""
        read_uvarint = self.bind(primitives.read_uvarint)
        for field in fields:
            self.lines.append(f"{field.name} = {self.default(field)}")
        self.lines += [
            "_tags = buffer[_at]",
            "_at += 1",
            "if _tags:",
            f" _tags, _at = {read_uvarint}(buffer, _at - 1)",
            " if _counted: _counted(_tags)",
            " for _ in range(_tags):",
            f"  _tag, _at = {read_uvarint}(buffer, _at)",
            f"  _size, _at = {read_uvarint}(buffer, _at)",
            "  _end = _at + _size",
            "  if _end > len(buffer):",
            "   raise ValueError('a tagged field is longer than its message')",
        ]
        for field in fields:
            self.lines.append(f"  if _tag == {field.tag}:")
            self.lines += ["   " + line for line in self.read_field(field)]
        self.lines += [
            "  if _at > _end:",
            "   raise ValueError('a tagged field is longer than it says')",
            "  _at = _end",
        ]

    def default(self, field: Field) -> str:
        if field.default is ...:
            return "[]" if field.is_array else f"{self.bind(field.struct)}()"
        return self.bind(field.default)


def _fixed_reader(code: str) -> Callable[[Buffer, int], tuple[Any, int]]:
    layout = struct.Struct(">" + code)

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        return layout.unpack_from(buffer, position)[0], position + layout.size

    return read


class _WriterCompiler(_Compiler):
    def compile(self, owner: type[Struct]) -> Callable[..., Any]:
        for run in self.runs(self.untagged(owner)):
            self.write_run(run)
        if self.flexible:
            self.write_tagged(self.tagged(owner))
        return self.finish("message, out, splices")

    def write_run(self, run: list[Field]) -> None:
        first = run[0]
        if first.kind in FIXED and not first.is_array:
            layout = struct.Struct(">" + "".join(FIXED[field.kind] for field in run))
            values = ", ".join(f"message.{field.name}" for field in run)
            self.lines.append(f"out += {self.bind(layout.pack)}({values})")
        else:
            self.lines += self.write_field(first, f"message.{first.name}", "out")

    def write_field(self, field: Field, value: str, out: str) -> list[str]:
        nullable = self.is_nullable(field)
        if field.is_array:
            return self.write_array(field, value, nullable, out)
        if field.kind == "struct":
            write = f"{self.nested(field)}({value}, {out}, splices)"
            if not nullable:
                return [write]
            null = f"{out}.append({0 if self.is_tagged(field) else 0xFF})"
            return [f"if {value} is None:", f" {null}", "else:", f" {out}.append(1)", f" {write}"]
        return self.write_value(field, value, nullable, out)

    def write_value(self, field: Field, value: str, nullable: bool, out: str) -> list[str]:
        """Return lines that write one primitive value."""
        if field.kind == "string":
            return [f"{self.bind(primitives.STRING_WRITERS[self.flexible, nullable])}({out}, {value})"]
        if field.kind in FIXED:
            return [f"{out} += {self.bind(struct.Struct('>' + FIXED[field.kind]).pack)}({value})"]
        size = self.bind(primitives.write_compact_size if self.flexible else primitives.write_size)
        append = f"splices.append((len({out}), {value}))" if field.kind == "records" else f"{out} += {value}"
        if not nullable:
            return [f"{size}({out}, len({value}))", append]
        return [
            f"if {value} is None:",
            f" {size}({out}, None)",
            "else:",
            f" {size}({out}, len({value}))",
            f" if {value}: {append}",
        ]

    def write_array(self, field: Field, value: str, nullable: bool, out: str) -> list[str]:
        size = self.bind(primitives.write_compact_size if self.flexible else primitives.write_size)
        if field.kind in FIXED and field.kind != "uuid":
            pack = self.bind(struct.pack)
            items = [f"{out} += {pack}(f'>{{len({value})}}{FIXED[field.kind]}', *{value})"]
        elif field.kind == "struct":
            write = self.nested(field)
            items = [
                f"if type({value}) is {self.bind(Repeated)}:",
                f" {value}.write({self.version}, {write}, {out}, splices)",
                "else:",
                f" for _item in {value}:",
                f"  {write}(_item, {out}, splices)",
            ]
        else:
            lines = self.write_value(field, "_item", nullable=False, out=out)
            items = [f"for _item in {value}:", *(" " + line for line in lines)]
        lines = [f"{size}({out}, len({value}))", *items]
        if not nullable:
            return lines
        return [f"if {value} is None:", f" {size}({out}, None)", "else:", *(" " + line for line in lines)]

    def write_tagged(self, fields: list[Field]) -> None:
        """Write tagged fields that differ from their default, in the order of their tags (KIP-482)."""
        if not fields:
            self.lines.append("out.append(0)")
            return
        write_uvarint = self.bind(primitives.write_uvarint)
        self.lines.append("tags = []")
        for field in fields:
            value = f"message.{field.name}"
            self.lines += [f"if {value} != {self.default(field)}:", " part = bytearray()"]
            self.lines += [" " + line for line in self.write_field(field, value, "part")]
            self.lines.append(f" tags.append(({field.tag}, part))")
        self.lines += [
            f"{write_uvarint}(out, len(tags))",
            "for tag, part in tags:",
            f" {write_uvarint}(out, tag)",
            f" {write_uvarint}(out, len(part))",
            " out += part",
        ]

    def default(self, field: Field) -> str:
        if field.default is ...:
            return self.bind([]) if field.is_array else self.bind(cast("type[Struct]", field.struct)())
        return self.bind(field.default)
