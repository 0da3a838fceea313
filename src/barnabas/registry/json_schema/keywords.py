"""Compares the keywords of two schemas of JSON Schema, without allOf, anyOf, oneOf and not."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

from barnabas.registry.json_schema.documents import JsonNode
from barnabas.registry.json_schema.patterns import names_with
from barnabas.registry.schemas import Incompatibility

SUMS = ("anyOf", "oneOf")
_ALL_TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
#: Limits by type: names of the lower and the upper one.
_LIMITS = (
    ("string", "minLength", "maxLength"),
    ("array", "minItems", "maxItems"),
    ("object", "minProperties", "maxProperties"),
)
#: Work of compiling a pattern, in the unit of `SubschemaComparison.spend`.
_PATTERN_STEPS = 200
#: The beginning of a pattern, and whether its last character may be missing.
_HEAD = re.compile(r"\^([A-Za-z0-9_-]*)([*?{]?)")
#: Keywords that are not compared but must be the same, and their types.
_UNCHANGED = (
    ("string", ("pattern",)),
    ("array", ("contains", "minContains", "maxContains", "unevaluatedItems")),
    ("object", ("unevaluatedProperties",)),
    ("", ("if", "then", "else", "$dynamicRef", "$recursiveRef")),
)


class SubschemaComparison(Protocol):
    """Compares subschemas, with a limit of its work."""

    def compare(self, writer: JsonNode, reader: JsonNode, path: str) -> list[Incompatibility]:
        """Return why the reader does not accept some values that the writer accepts."""

    def all_of(self, schemas: Sequence[Any]) -> Any:
        """Return the schema of what all schemas accept; for the same ones the same."""

    def spend(self, steps: int) -> None:
        """Count steps; one is a name that is compared with a pattern."""


def keyword_problems(
    comparison: SubschemaComparison, writer: JsonNode, reader: JsonNode, path: str
) -> list[Incompatibility]:
    """Return why the reader's keywords refuse some values that the writer's accept."""
    old: Mapping[str, Any] = writer.contents if isinstance(writer.contents, dict) else {}
    new: Mapping[str, Any] = reader.contents
    allowed = values_of(new)
    if allowed is not None:
        values = values_of(old)
        if values is None:
            return [_problem("ENUM_ARRAY_NARROWED", f"{path}/enum", "the reader accepts only some values")]
        missing = ", ".join(sorted(values - allowed))
        if missing:
            return [_problem("ENUM_ARRAY_NARROWED", f"{path}/enum", f"the reader lacks {missing}")]
    types = types_of(old)
    refused = sorted(types - _with_integer(types_of(new)))
    if refused:
        return [_problem("TYPE_NARROWED", f"{path}/type", f"the reader does not accept {', '.join(refused)}")]
    problems = [*_limit_problems(old, new, types, path), *unchanged_problems(old, new, types, path)]
    if types & {"number", "integer"}:
        problems += _number_problems(old, new, path)
    if "array" in types:
        problems += _array_problems(comparison, writer, reader, path)
    if "object" in types:
        problems += _object_problems(comparison, writer, reader, path)
    return problems


def values_of(contents: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the only values that a schema accepts, as JSON; None if there are others."""
    if "const" not in contents and "enum" not in contents:
        return None
    values = [contents["const"]] if "const" in contents else contents["enum"]
    allowed = map(_as_text, contents.get("enum", values))
    return frozenset(map(_as_text, values)) & frozenset(allowed)


def types_of(contents: Mapping[str, Any]) -> frozenset[str]:
    """Return the types of the values that a schema may accept."""
    if "type" in contents:
        kinds = contents["type"]
        return frozenset((kinds,) if isinstance(kinds, str) else kinds)
    values = values_of(contents)
    return _ALL_TYPES if values is None else frozenset(_type_of(json.loads(text)) for text in values)


def _with_integer(types: frozenset[str]) -> frozenset[str]:
    return types | {"integer"} if "number" in types else types


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _limit_problems(
    old: Mapping[str, Any], new: Mapping[str, Any], types: Iterable[str], path: str
) -> list[Incompatibility]:
    problems = []
    for kind, lower, upper in _LIMITS:
        if kind not in types:
            continue
        if new.get(lower, 0) > old.get(lower, 0):
            text = f"the reader's {lower} is {new[lower]}, the writer's {old.get(lower, 0)}"
            problems.append(_problem(f"{_capital(lower)}_INCREASED", f"{path}/{lower}", text))
        if upper in new and (upper not in old or new[upper] < old[upper]):
            text = f"the reader's {upper} is {new[upper]}, the writer's {old.get(upper, 'unlimited')}"
            problems.append(_problem(f"{_capital(upper)}_DECREASED", f"{path}/{upper}", text))
    return problems


def unchanged_problems(
    old: Mapping[str, Any], new: Mapping[str, Any], types: Iterable[str], path: str
) -> list[Incompatibility]:
    """Return the keywords of the reader whose meaning is not compared, if they are not the writer's."""
    return [
        _problem(f"{_capital(name)}_CHANGED", f"{path}/{name}", f"the reader's {name} is not the writer's")
        for kind, names in _UNCHANGED
        if not kind or kind in types
        for name in names
        if name in new and (name not in old or _as_text(old[name]) != _as_text(new[name]))
    ]


def _number_problems(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> list[Incompatibility]:
    problems = []
    for name, sign in (("minimum", 1), ("maximum", -1)):
        bound = _bound(new, name, sign)
        if bound is None:
            continue
        other = _bound(old, name, sign)
        if other is None or bound > other:
            error = f"{_capital(name)}_{'INCREASED' if sign > 0 else 'DECREASED'}"
            problems.append(
                _problem(error, f"{path}/{name}", f"the reader's {name} is stricter than the writer's")
            )
    step = new.get("multipleOf")
    if step is not None:
        other_step = old.get("multipleOf", 1 if old.get("type") == "integer" else None)
        if other_step is None or not _is_multiple(other_step, step):
            text = f"the reader's multipleOf is {step}, the writer's {other_step or 'absent'}"
            problems.append(_problem("MULTIPLE_OF_CHANGED", f"{path}/multipleOf", text))
    return problems


def _is_multiple(number: float, step: float) -> bool:
    """Whether a number is a multiple of another, as they are written: 0.3 is one of 0.1."""
    if float("inf") in (number, step):
        return number == step
    return Fraction(str(number)) % Fraction(str(step)) == 0


def _bound(contents: Mapping[str, Any], name: str, sign: int) -> tuple[float, bool] | None:
    """Return a bound and whether it is excluded, so that the stricter one is greater; of draft 4, too."""
    exclusive = contents.get(f"exclusive{name.capitalize()}")
    bounds = []
    if name in contents:
        bounds.append((sign * contents[name], exclusive is True))
    if exclusive is not None and not isinstance(exclusive, bool):
        bounds.append((sign * exclusive, True))
    return max(bounds, default=None)


def _array_problems(
    comparison: SubschemaComparison, writer: JsonNode, reader: JsonNode, path: str
) -> list[Incompatibility]:
    old = writer.contents if isinstance(writer.contents, dict) else {}
    problems = []
    if reader.contents.get("uniqueItems") and not old.get("uniqueItems"):
        problems.append(
            _problem("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", "the reader refuses equal items")
        )
    (first, rest), (new_first, new_rest) = _items(old), _items(reader.contents)
    for index in range(max(len(first), len(new_first))):
        item = first[index] if index < len(first) else rest
        new_item = new_first[index] if index < len(new_first) else new_rest
        problems += comparison.compare(writer.child(item), reader.child(new_item), f"{path}/items/{index}")
    return [*problems, *comparison.compare(writer.child(rest), reader.child(new_rest), f"{path}/items")]


def _items(contents: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and that of all others."""
    if "prefixItems" in contents:
        return contents["prefixItems"], contents.get("items", True)
    items = contents.get("items", True)
    return (items, contents.get("additionalItems", True)) if isinstance(items, list) else ([], items)


def _object_problems(
    comparison: SubschemaComparison, writer: JsonNode, reader: JsonNode, path: str
) -> list[Incompatibility]:
    old = writer.contents if isinstance(writer.contents, dict) else {}
    new = reader.contents
    problems = _required_problems(old, new, path)
    names = dict.fromkeys((*old.get("properties", ()), *new.get("properties", ())))
    before, after = (_schemas_of(comparison, contents, names) for contents in (old, new))
    for name in names:
        found = comparison.compare(
            writer.child(before[name]), reader.child(after[name]), f"{path}/properties/{name}"
        )
        error = _property_error(old, new, name)
        if found and error:
            text = "the two schemas accept different values of this property"
            found = [_problem(error, f"{path}/properties/{name}", text)]
        problems += found
    for pattern in dict.fromkeys((*old.get("patternProperties", ()), *new.get("patternProperties", ()))):
        inner, required = f"{path}/patternProperties/{pattern}", reader.child(_of_pattern(new, pattern))
        for written in (_of_pattern(old, pattern), *_of_other_patterns(comparison, old, pattern)):
            problems += comparison.compare(writer.child(written), required, inner)
    for name in ("additionalProperties", "propertyNames"):
        problems += comparison.compare(
            writer.child(old.get(name, True)), reader.child(new.get(name, True)), f"{path}/{name}"
        )
    return [*problems, *_dependency_problems(comparison, writer, reader, path)]


def _required_problems(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> list[Incompatibility]:
    """A property with a default may become required, as for Confluent's registry."""
    problems = []
    before = set(_names(old.get("required")))
    for name in _names(new.get("required")):
        schema = new.get("properties", {}).get(name)
        if name not in before and not (isinstance(schema, dict) and "default" in schema):
            text = f"the reader requires '{name}', which has no default"
            problems.append(_problem("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}", text))
    return problems


def _names(required: Any) -> list[str]:
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _schemas_of(
    comparison: SubschemaComparison, contents: Mapping[str, Any], names: Collection[str]
) -> dict[str, Any]:
    """Return the schema of each property: its own and those of all patterns that it matches, or that of others."""
    own = contents.get("properties", {})
    found = {name: [own[name]] if name in own else [] for name in names}
    for pattern, schema in contents.get("patternProperties", {}).items():
        comparison.spend(_PATTERN_STEPS + len(names) + sum(map(len, names)) // 10)
        for name in names_with(pattern, names):
            found[name].append(schema)
    rest = contents.get("additionalProperties", True)
    return {name: comparison.all_of(schemas or [rest]) for name, schemas in found.items()}


def _of_pattern(contents: Mapping[str, Any], pattern: str) -> Any:
    return contents.get("patternProperties", {}).get(pattern, contents.get("additionalProperties", True))


def _of_other_patterns(
    comparison: SubschemaComparison, contents: Mapping[str, Any], pattern: str
) -> list[Any]:
    """Return what names that match a pattern may be required by others, if the schema does not have this one."""
    schemas = contents.get("patternProperties", {})
    if pattern in schemas:
        return []
    comparison.spend(len(schemas))
    return [schema for other, schema in schemas.items() if not _are_disjoint(_head(other), _head(pattern))]


def _head(pattern: str) -> str:
    """Return characters with which all names begin that match a pattern, as far as they are plain."""
    found = None if "|" in pattern else _HEAD.match(pattern)
    if found is None:
        return ""
    return found[1][:-1] if found[2] else found[1]


def _are_disjoint(head: str, other: str) -> bool:
    return not head.startswith(other) and not other.startswith(head)


def _property_error(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> str:
    """Return the error of a property that only one schema has; empty if both have it."""
    in_old, in_new = name in old.get("properties", ()), name in new.get("properties", ())
    if in_old and in_new:
        return ""
    contents, change = (new, "PROPERTY_REMOVED") if in_old else (old, "PROPERTY_ADDED")
    rest = contents.get("additionalProperties", True)
    if "patternProperties" in contents or isinstance(rest, dict):
        return f"{change}_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    return f"{change}_FROM_CLOSED_CONTENT_MODEL" if in_old else f"{change}_TO_OPEN_CONTENT_MODEL"


def _dependency_problems(
    comparison: SubschemaComparison, writer: JsonNode, reader: JsonNode, path: str
) -> list[Incompatibility]:
    problems = []
    old = writer.contents if isinstance(writer.contents, dict) else {}
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        before = old.get(keyword, {})
        for name, dependency in reader.contents.get(keyword, {}).items():
            inner = f"{path}/{keyword}/{name}"
            if not isinstance(dependency, list):
                earlier = before.get(name, True)
                earlier = True if isinstance(earlier, list) else earlier
                problems += comparison.compare(writer.child(earlier), reader.child(dependency), inner)
            elif not set(dependency) <= set(_names(before.get(name))):
                text = f"the reader requires more beside '{name}'"
                problems.append(_problem("DEPENDENCY_ARRAY_EXTENDED", inner, text))
    return problems


def _capital(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.lstrip("$")).upper()


def _problem(error: str, path: str, text: str) -> Incompatibility:
    return Incompatibility(error, path, text)
