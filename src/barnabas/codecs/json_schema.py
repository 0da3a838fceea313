"""JSON by a schema of JSON Schema.

An object with `properties` is a struct, and an array with one schema of its items a list. What has no single type is
a string with the JSON of the value: several alternatives, objects without `properties`, or a schema within itself.
Properties that the schema does not name are left out. A property that is not required may be missing or null.
Only types are checked, not bounds, patterns or enums.
"""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from barnabas.codecs import ReadRows
from barnabas.codecs.columns import row_type
from barnabas.codecs.errors import NULL, ConversionError, SchemaError
from barnabas.codecs.framing import Frame
from barnabas.codecs.json_columns import JsonColumnReader
from barnabas.codecs.json_values import (
    BOOLEAN,
    DATE,
    DATE_TIME,
    INTEGER,
    NUMBER,
    STRING,
    TEXT,
    JsonType,
    misfit,
)
from barnabas.registry.json_schema.documents import JsonNode, check_document
from barnabas.registry.json_schema.keywords import SUMS
from barnabas.registry.json_schema.schema import JsonSchema
from barnabas.registry.schemas import InvalidSchema

_FORMATS = {"date": DATE, "date-time": DATE_TIME}
_FLAT = {"boolean": BOOLEAN, "integer": INTEGER, "number": NUMBER}


class JsonSchemaDecoder:
    """Decodes JSON objects of one schema."""

    def __init__(self, schema: JsonSchema, frame: Frame) -> None:
        """:raises SchemaError: The schema is invalid, or is not of an object with properties."""
        builder = _Builder()
        try:
            check_document(schema.root)
            kind = builder.root(schema.root)
        except InvalidSchema as error:
            raise SchemaError(str(error)) from None
        except RecursionError:
            raise SchemaError("the schema is nested too deeply") from None
        title = schema.root.contents.get("title")
        self._read = kind.read
        self._frame = frame
        # a text has all digits of the numbers in it
        self._parse = json.JSONDecoder(
            parse_float=Decimal if builder.has_texts else None, parse_constant=_refuse_constant
        ).decode
        self.label = f"JSON of {title}" if isinstance(title, str) and title else "JSON of its schema"
        self.columns = pa.schema(list(kind.type))
        self._reader = (
            None if builder.has_texts else JsonColumnReader(self.columns, row_type(self), frame.header())
        )

    def read_column(self, values: pa.Array) -> ReadRows | None:
        """Read many values at a time, as far as possible; None if it is not."""
        return None if self._reader is None else self._reader.read(values)

    def decode(self, value: bytes) -> dict[str, Any]:
        """Decode an object to a row.

        :raises ConversionError: It is malformed.
        """
        try:
            found = self._parse(self._frame.opened(value).decode())
        except UnicodeDecodeError:
            raise ConversionError("it is not UTF-8") from None
        except (ValueError, RecursionError) as error:
            raise ConversionError(f"it is not valid JSON: {error}{self._frame.hint(value)}") from None
        if not isinstance(found, dict):
            raise ConversionError(f"it {misfit(found, 'an object')}")
        row: dict[str, Any] = self._read(found)
        return row


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


class _Part(NamedTuple):
    """A part of a schema; the type is None if it only accepts null."""

    type: JsonType | None
    nullable: bool


class _Builder:
    """Builds the types of a schema.

    A part of it is a conjunction: its keywords, those of `allOf`, and those that `$ref` points at.
    """

    def __init__(self) -> None:
        self.has_texts = False

    def root(self, root: JsonNode) -> JsonType:
        """:raises SchemaError: It is not of an object with properties."""
        conjuncts = _conjuncts([root])
        types = _types(conjuncts)
        is_object = types is None or types <= {"object", "null"}
        if not is_object or not _properties(conjuncts):
            raise SchemaError("the schema must be of an object with properties, which are columns")
        return self._struct(conjuncts, "", ())

    def _part(self, nodes: Iterable[JsonNode], path: str, within: tuple[frozenset[int], ...]) -> _Part:
        """Return the type of a conjunction; `path` leads to it, `within` are the objects around it."""
        conjuncts = _conjuncts(nodes)
        types = _types(conjuncts)
        if types is None:
            return self._alternatives(conjuncts, path, within)
        if types == {"null"}:
            return _Part(None, True)
        nullable = "null" in types
        match sorted(types - {"null"}):
            case ["object"]:
                return _Part(self._struct(conjuncts, path, within), nullable)
            case ["array"]:
                return _Part(self._list(conjuncts, path, within), nullable)
            case ["string"]:
                return _Part(_string(conjuncts), nullable)
            case [name] if name in _FLAT:
                return _Part(_FLAT[name], nullable)
            case _:
                return self._text()

    def _text(self) -> _Part:
        self.has_texts = True
        return _Part(TEXT, True)

    def _alternatives(
        self, conjuncts: list[JsonNode], path: str, within: tuple[frozenset[int], ...]
    ) -> _Part:
        """Return the type of `anyOf` or `oneOf`, if all alternatives but null have the same."""
        sums = [(node, node.contents[key]) for node in conjuncts for key in SUMS if key in node.contents]
        if len(sums) != 1:
            return self._text()
        node, branches = sums[0]
        parts = [self._part([node.child(branch)], path, within) for branch in branches]
        types = [part.type for part in parts if part.type is not None]
        if not types or any(other is not types[0] for other in types):
            return self._text()
        return _Part(types[0], any(part.nullable for part in parts))

    def _list(self, conjuncts: list[JsonNode], path: str, within: tuple[frozenset[int], ...]) -> JsonType:
        found = [node.child(node.contents["items"]) for node in conjuncts if "items" in node.contents]
        is_tuple = any(isinstance(each.contents, list) for each in found)
        if is_tuple or any("prefixItems" in node.contents for node in conjuncts):
            self.has_texts = True
            return TEXT
        part = self._part(found, f"{path}[]", within)
        item = part if part.type is not None else self._text()
        assert item.type is not None
        kind, nullable = item.type, item.nullable

        def read(value: Any) -> list[Any]:
            if not isinstance(value, list):
                raise misfit(value, "an array")
            return [_read(kind, nullable, each, f"[{index}]") for index, each in enumerate(value)]

        return JsonType(pa.list_(pa.field("item", kind.type, nullable)), read)

    def _struct(self, conjuncts: list[JsonNode], path: str, within: tuple[frozenset[int], ...]) -> JsonType:
        key = frozenset(id(node.contents) for node in conjuncts)
        properties = _properties(conjuncts)
        if key in within or not properties:
            self.has_texts = True
            return TEXT
        required = _required(conjuncts)
        fields: list[tuple[str, JsonType, bool]] = []
        for name, nodes in properties.items():
            inner = f"{path}.{name}" if path else name
            if name.lower() in {other.lower() for other, _, _ in fields}:
                raise SchemaError("the name occurs twice in its object (case does not matter)", inner)
            part = self._part(nodes, inner, (*within, key))
            kind = self._text().type if part.type is None else part.type
            assert kind is not None
            fields.append((name, kind, part.nullable or name not in required))

        def read(value: Any) -> dict[str, Any]:
            if not isinstance(value, dict):
                raise misfit(value, "an object")
            return {name: _read(kind, nullable, value.get(name), name) for name, kind, nullable in fields}

        return JsonType(pa.struct([pa.field(name, kind.type, null) for name, kind, null in fields]), read)


def _read(kind: JsonType, nullable: bool, value: Any, step: str) -> Any:
    """Return a nested value of a row.

    :raises ConversionError: It does not have the type; the path begins with `step`.
    """
    if value is None:
        if nullable:
            return None
        raise ConversionError(NULL, step)
    try:
        return kind.read(value)
    except ConversionError as error:
        raise error.within(step) from None


def _conjuncts(nodes: Iterable[JsonNode]) -> list[JsonNode]:
    """Return all parts of a conjunction that are objects."""
    pending, found = list(nodes), {}
    while pending:
        node = pending.pop(0).resolved()
        if not isinstance(node.contents, dict) or id(node.contents) in found:
            continue
        found[id(node.contents)] = node
        if "$ref" in node.contents:  # with keywords beside it
            pending.append(node.target())
        pending += [node.child(each) for each in node.contents.get("allOf", ())]
    return list(found.values())


def _types(conjuncts: list[JsonNode]) -> set[str] | None:
    """Return the types that a conjunction accepts; None if it does not say."""
    accepted: set[str] | None = None
    for node in conjuncts:
        named = _named_types(node.contents)
        if named is not None:
            accepted = named if accepted is None else accepted & named
    return accepted - {"integer"} if accepted is not None and "number" in accepted else accepted


def _named_types(contents: dict[str, Any]) -> set[str] | None:
    names = contents.get("type")
    if names is None and ("enum" in contents or "const" in contents):
        values = contents["enum"] if "enum" in contents else [contents["const"]]
        names = [_TYPE_NAMES[type(value)] for value in values]
    if names is None:
        return None
    types = {names} if isinstance(names, str) else set(map(str, names))
    return types | {"integer"} if "number" in types else types  # an integer is a number, too


_TYPE_NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def _properties(conjuncts: list[JsonNode]) -> dict[str, list[JsonNode]]:
    """Return the schemas of each property."""
    found: dict[str, list[JsonNode]] = {}
    for node in conjuncts:
        for name, contents in node.contents.get("properties", {}).items():
            found.setdefault(name, []).append(node.child(contents))
    return found


def _required(conjuncts: list[JsonNode]) -> set[str]:
    lists = [node.contents.get("required") for node in conjuncts]
    return {name for names in lists if isinstance(names, list) for name in names}


def _string(conjuncts: list[JsonNode]) -> JsonType:
    formats = [node.contents["format"] for node in conjuncts if "format" in node.contents]
    return _FORMATS.get(formats[0], STRING) if formats else STRING
