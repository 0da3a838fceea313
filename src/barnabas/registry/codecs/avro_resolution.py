"""Values of a writer's schema of Avro as values of a reader's (schema resolution in Avro's specification)."""

from typing import Any

from barnabas.registry.avro.compatibility import reading_problems
from barnabas.registry.avro.model import AvroField, AvroType
from barnabas.registry.codecs.avro_logical_types import same_meaning
from barnabas.registry.codecs.avro_reader import read_avro
from barnabas.registry.codecs.avro_writer import write_avro
from barnabas.registry.codecs.errors import MalformedValue

_NUMBERS = ("int", "long", "float", "double")


def translate_avro(reader: AvroType, writer: AvroType, data: bytes) -> bytes:
    """Return a datum of the writer's schema as one of the reader's.

    :raises MalformedValue: If it is not one, or the reader cannot have it.
    """
    return write_avro(reader, resolve_avro(reader, writer, read_avro(writer, data)))


def resolve_avro(reader: AvroType, writer: AvroType, value: Any) -> Any:
    """Return a value in Avro's JSON encoding as the reader's schema has it; without fields that get their default.

    :raises MalformedValue: If the reader's schema cannot have it.
    """
    if writer.kind == "union":
        branch, inner = _branch_of(writer, value)
        return resolve_avro(reader, branch, inner)
    if reader.kind == "union":
        branch = _branch_for(reader, writer)
        resolved = resolve_avro(branch, writer, value)
        return None if branch.kind == "null" else {branch.full_name: resolved}
    if reader.kind != writer.kind:
        return same_meaning(reader, writer, _promoted(reader, writer, value))
    if reader.kind == "enum":
        return _symbol(reader, value)
    if reader.items is not None and writer.items is not None:
        if reader.kind == "array":
            return [resolve_avro(reader.items, writer.items, item) for item in value]
        return {key: resolve_avro(reader.items, writer.items, item) for key, item in value.items()}
    if reader.kind in ("record", "error"):
        return _record(reader, writer, value)
    return same_meaning(reader, writer, value)


def _branch_of(union: AvroType, value: Any) -> tuple[AvroType, Any]:
    name, inner = ("null", None) if value is None else next(iter(value.items()))
    return next(branch for branch in union.branches if branch.full_name == name), inner


def _branch_for(union: AvroType, writer: AvroType) -> AvroType:
    """Return the branch of the same type, or else the first that can have the value."""
    for branch in union.branches:
        if branch.kind == writer.kind and branch.full_name == writer.full_name:
            return branch
    for branch in union.branches:
        if not reading_problems(branch, writer):
            return branch
    raise MalformedValue(f"the reader's union has no branch for {writer.full_name}")


def _promoted(reader: AvroType, writer: AvroType, value: Any) -> Any:
    kinds = (writer.kind, reader.kind)
    if kinds == ("string", "bytes"):
        return value.encode().decode("latin-1")
    if kinds == ("bytes", "string"):
        try:
            return value.encode("latin-1").decode()
        except UnicodeDecodeError:
            raise MalformedValue("bytes that are read as a string are not UTF-8") from None
    if all(kind in _NUMBERS for kind in kinds) and _NUMBERS.index(kinds[0]) < _NUMBERS.index(kinds[1]):
        return value
    raise MalformedValue(f"{writer.full_name} cannot be read as {reader.full_name}")


def _symbol(reader: AvroType, value: str) -> str:
    if value in reader.symbols:
        return value
    if reader.default is None:
        raise MalformedValue(f"{value} is not a symbol of {reader.full_name}, which has no default")
    return reader.default


def _record(reader: AvroType, writer: AvroType, value: dict[str, Any]) -> dict[str, Any]:
    written = {field.name: field for field in writer.fields}
    resolved = {}
    for field in reader.fields:
        source = _source(field, written)
        if source is not None:
            resolved[field.name] = resolve_avro(field.type, source.type, value[source.name])
    return resolved


def _source(field: AvroField, written: dict[str, AvroField]) -> AvroField | None:
    return next((written[name] for name in (field.name, *field.aliases) if name in written), None)
