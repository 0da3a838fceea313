"""Parses schemas of Avro 1.12."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.registry.avro.model import NAMED, NO_DEFAULT, PRIMITIVES, AvroField, AvroType
from barnabas.registry.schemas import InvalidSchema, read_json

#: A string, or a comment of Java's library. One that does not end is the rest of the text.
_STRING_OR_COMMENT = re.compile(r"""("(?:[^"\\]|\\.)*+"?)|/\*.*?(?:\*/|\Z)|//[^\n]*""", re.DOTALL)
#: A number in Java's syntax.
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
#: Defaults that are no numbers of JSON.
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
#: Java's library has no characters of more than 16 bits.
_CHARACTER_MAX = "\uffff"
_ORDERS = ("ascending", "descending", "ignore")
#: Attributes with a meaning; others are properties of the schema's author.
_TYPE_ATTRIBUTES = frozenset(
    ("type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size", "items", "values")
)
_FIELD_ATTRIBUTES = frozenset(("name", "type", "doc", "default", "order", "aliases"))
_INT_MAX, _LONG_MAX = 2**31, 2**63
#: The branches of nested unions multiply.
_DEFAULT_STEPS_MAX = 1_000_000


def parse_avro(
    text: str, known: Mapping[str, AvroType], *, is_new: bool
) -> tuple[AvroType, dict[str, AvroType]]:
    """Return the type of a schema, and the named types that it defines.

    :param known: Named types that others define, by full name.
    :param is_new: Whether defaults must fit their types; schemas that are stored already may be older than that rule.
    :raises InvalidSchema: With what is wrong.
    """
    parser = _Parser(known, is_new=is_new)
    try:
        return parser.type(_read(text, is_new=is_new), ""), parser.defined
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None


def _read(text: str, *, is_new: bool) -> Any:
    """Return the JSON of a schema, which may have comments, or be the name of a primitive type alone, as clients of old
    versions send it.
    """
    try:
        return read_json(text, is_new=is_new)
    except ValueError:
        if text.strip() in PRIMITIVES:
            return text.strip()
    try:
        return read_json(_STRING_OR_COMMENT.sub(lambda found: found[1] or " ", text), is_new=is_new)
    except ValueError:
        raise InvalidSchema("the schema is not JSON") from None


class _Parser:
    def __init__(self, known: Mapping[str, AvroType], *, is_new: bool) -> None:
        self._known = known
        self._is_new = is_new
        self._defaults = _DefaultCheck()
        self.defined: dict[str, AvroType] = {}

    def type(self, part: Any, namespace: str) -> AvroType:
        """Parse a type; names without one have the given namespace."""
        if isinstance(part, str):
            return self._by_name(part, namespace)
        if isinstance(part, list):
            return self._union(part, namespace)
        if not isinstance(part, dict):
            raise InvalidSchema(f"{_shown(part)} is not a type: a name, an object or an array is expected")
        kind = part.get("type")
        if isinstance(kind, dict | list):
            return self.type(kind, namespace)
        if not isinstance(kind, str):
            raise InvalidSchema(f"{_shown(part)} has no type")
        if kind in NAMED:
            return self._named(kind, part, namespace)
        if kind in ("array", "map"):
            name = "items" if kind == "array" else "values"
            if name not in part:
                raise InvalidSchema(f"a type {kind} has no {name}")
            return AvroType(kind, items=self.type(part[name], namespace), properties=_properties(part))
        if kind in PRIMITIVES:
            return AvroType(kind, properties=_properties(part))
        return self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for candidate in (full, name):
            found = self.defined.get(candidate) or self._known.get(candidate)
            if found is not None:
                return found
        raise InvalidSchema(f"there is no type '{full}', and no reference has it")

    def _union(self, part: list[Any], namespace: str) -> AvroType:
        branches = tuple(self.type(branch, namespace) for branch in part)
        names = [branch.full_name for branch in branches]
        if "union" in names:
            raise InvalidSchema("a union is directly in a union")
        repeated = _first_repeated(names)
        if repeated is not None:
            raise InvalidSchema(f"a union has two branches of the type {repeated}")
        return AvroType("union", branches=branches)

    def _named(self, kind: str, part: dict[str, Any], enclosing: str) -> AvroType:
        name, namespace = _names_of(part, kind, enclosing)
        properties = _properties(part)
        if kind == "enum":
            properties.pop("default", None)
        aliases = tuple(
            alias if "." in alias or not namespace else f"{namespace}.{alias}"
            for alias in _texts(part, "aliases", name)
        )
        for alias in aliases if self._is_new else ():
            _check_name(alias.rpartition(".")[2], f"type that is an alias of {name}")
        found = AvroType(kind, name, namespace, _doc(part), aliases, properties=properties)
        if found.full_name in self.defined:
            raise InvalidSchema(f"the type '{found.full_name}' is defined twice")
        self.defined[found.full_name] = found
        if kind == "enum":
            self._complete_enum(found, part)
        elif kind == "fixed":
            size = part.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise InvalidSchema(f"the size of {name} is {_shown(size)}; it must be a number")
            if self._is_new and size >= _INT_MAX:
                raise InvalidSchema(f"the size of {name} is {size}; it must be a number of 32 bits")
            found.size = size
        else:
            self._complete_record(found, part)
        return found

    def _complete_enum(self, found: AvroType, part: dict[str, Any]) -> None:
        if "symbols" not in part:
            raise InvalidSchema(f"the enum {found.name} has no symbols")
        found.symbols = tuple(_texts(part, "symbols", found.name))
        for symbol in found.symbols:
            _check_name(symbol, f"symbol of {found.name}")
        if len(set(found.symbols)) < len(found.symbols):
            raise InvalidSchema(f"the enum {found.name} has a symbol twice")
        found.default = part.get("default")
        if found.default is not None and found.default not in found.symbols:
            raise InvalidSchema(f"the default {_shown(found.default)} is not a symbol of {found.name}")

    def _complete_record(self, found: AvroType, part: dict[str, Any]) -> None:
        fields = part.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"the record {found.name} has no fields")
        found.fields = tuple(self._field(each, found) for each in fields)
        repeated = _first_repeated(each.name for each in found.fields)
        if repeated is not None:
            raise InvalidSchema(f"the record {found.name} has the field {repeated} twice")

    def _field(self, part: Any, record: AvroType) -> AvroField:
        if not isinstance(part, dict) or not isinstance(part.get("name"), str) or "type" not in part:
            raise InvalidSchema(f"a field of {record.name} must have a name and a type: {_shown(part)}")
        name = part["name"]
        _check_name(name, f"field of {record.name}")
        kind = self.type(part["type"], record.namespace)
        default = part.get("default", NO_DEFAULT)
        if kind.kind in ("float", "double") and isinstance(default, str):
            default = _number_in(default)
            is_fitting = not isinstance(default, str) or default in _NOT_FINITE
        else:
            is_fitting = default is NO_DEFAULT or not self._is_new or self._defaults.fits(default, kind)
        if self._is_new and not is_fitting:
            raise InvalidSchema(f"the default {_shown(default)} of {record.name}.{name} is not of its type")
        order = part.get("order", "ascending")
        order = order.lower() if isinstance(order, str) else order
        if order not in _ORDERS:
            raise InvalidSchema(
                f"the order of {record.name}.{name} is {_shown(order)}: {', '.join(_ORDERS)} are valid"
            )
        properties = {key: value for key, value in part.items() if key not in _FIELD_ATTRIBUTES}
        return AvroField(
            name, kind, _doc(part), default, order, tuple(_texts(part, "aliases", name)), properties
        )


def _number_in(text: str) -> float | str:
    """Return a default that is written as a text, as Java's library does for NaN and infinity."""
    text = text.strip()
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text.removeprefix("+")
    value = float(number[1])
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _names_of(part: dict[str, Any], kind: str, enclosing: str) -> tuple[str, str]:
    name, namespace = part.get("name"), part.get("namespace")
    if not isinstance(name, str):
        raise InvalidSchema(f"a type {kind} has no name")
    if namespace is not None and not isinstance(namespace, str):
        raise InvalidSchema(f"the namespace of {name} is {_shown(namespace)}; it must be a text")
    if "." in name:
        namespace, _, name = name.rpartition(".")
    elif namespace is None:
        namespace = enclosing
    _check_name(name, "type")  # Java's library does not check namespaces either
    if not namespace and name in PRIMITIVES:
        raise InvalidSchema(f"a type cannot have the name {name}, which is that of a primitive type")
    return name, namespace


def _check_name(name: str, what: str) -> None:
    letters = name.replace("_", "a")
    is_name = letters[:1].isalpha() and all(each.isalpha() or each.isdecimal() for each in letters)
    if not is_name or max(letters) > _CHARACTER_MAX:
        raise InvalidSchema(f"{_shown(name)} is not a valid name of a {what}: letters, digits and _ are")


def _texts(part: dict[str, Any], attribute: str, owner: str) -> list[str]:
    values = part.get(attribute, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidSchema(f"the {attribute} of {owner} must be an array of texts")
    return values


def _doc(part: dict[str, Any]) -> str | None:
    doc = part.get("doc")
    return doc if isinstance(doc, str) else None


def _properties(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in _TYPE_ATTRIBUTES}


class _DefaultCheck:
    """Whether defaults fit their types."""

    def __init__(self) -> None:
        self._steps_left = _DEFAULT_STEPS_MAX

    def fits(self, value: Any, kind: AvroType) -> bool:
        """Whether a default fits a type; that of a union is of one of its branches.

        :raises InvalidSchema: If this takes too long.
        """
        self._steps_left -= 1
        if self._steps_left < 0:
            raise InvalidSchema("the defaults are too complex to be compared with their types")
        match kind.kind:
            case "null":
                return value is None
            case "boolean":
                return isinstance(value, bool)
            case "int" | "long":
                limit = _INT_MAX if kind.kind == "int" else _LONG_MAX
                return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
            case "float" | "double":
                return isinstance(value, int | float) and not isinstance(value, bool)
            case "array":
                assert kind.items is not None
                return isinstance(value, list) and all(self.fits(each, kind.items) for each in value)
            case "map":
                assert kind.items is not None
                return isinstance(value, dict) and all(self.fits(each, kind.items) for each in value.values())
            case "union":
                return any(self.fits(value, branch) for branch in kind.branches)
            case "record" | "error":
                return isinstance(value, dict) and all(
                    self.fits(value[each.name], each.type)
                    if each.name in value
                    else each.default is not NO_DEFAULT
                    for each in kind.fields
                )
            case _:
                return isinstance(value, str)


def _shown(part: Any) -> str:
    text = json.dumps(part, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."
