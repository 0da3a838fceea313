"""Paths of columns such as `a.b`, by which PyIceberg finds nested ones: a name with a dot may equal another's path."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa


class _Column(NamedTuple):
    """A column at any depth."""

    top: str  #: name of the column of the table that has it
    paths: list[str]  #: `a.element.b`, and for short `a.b`
    is_dotted: bool


def clashing_columns(schema: pa.Schema) -> dict[str, str]:
    """Return the names of columns that have a path in common with another or within themselves, with such a path."""
    columns = [column for field in schema for column in _columns(field.name, [field], [""])]
    if not any(column.is_dotted for column in columns):
        return {}
    counts = Counter(path for column in columns for path in column.paths)
    dotted = {path for column in columns if column.is_dotted for path in column.paths if counts[path] > 1}
    return {column.top: path for column in columns for path in column.paths if path in dotted}


def _columns(top: str, fields: Iterable[pa.Field], prefixes: list[str]) -> Iterator[_Column]:
    for field in fields:
        paths = [f"{prefix}{field.name}" for prefix in prefixes]
        yield _Column(top, paths, "." in field.name)
        yield from _inner(top, field.type, paths)


def _inner(top: str, kind: pa.DataType, paths: list[str]) -> Iterator[_Column]:
    if pa.types.is_struct(kind):
        yield from _columns(top, kind, [f"{path}." for path in paths])
    elif pa.types.is_list(kind):
        yield from _element(top, "element", kind.value_type, paths)
    elif pa.types.is_map(kind):
        yield from _element(top, "key", kind.key_type, paths)
        yield from _element(top, "value", kind.item_type, paths)


def _element(top: str, name: str, kind: pa.DataType, paths: list[str]) -> Iterator[_Column]:
    full = [f"{path}.{name}" for path in paths]
    yield _Column(top, full, False)
    yield from _inner(top, kind, [*full, *paths] if pa.types.is_struct(kind) else full)
