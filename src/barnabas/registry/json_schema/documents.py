"""Documents of JSON Schema, and what their $ref point at."""

import contextlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from jsonschema import Draft3Validator, Draft4Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import DRAFT7, SchemaResource, specification_with

from barnabas.registry.json_schema.validators import format_checker, validator_class
from barnabas.registry.schemas import InvalidSchema

#: Drafts from 2019-09 on.
_SIBLINGS = re.compile(r"/draft/20\d\d-")
#: More $ref in a row are a cycle.
_REFERENCES_MAX = 100
#: Whether values of several types are unique is found out by comparing all pairs: the most pairs in a document.
_PAIRS_MAX = 10_000_000


class JsonDocument(NamedTuple):
    """A document, and the registry with those that it refers to."""

    root: "JsonNode"
    registry: Any


class JsonNode(NamedTuple):
    """A part of a document, with what resolves its $ref."""

    contents: Any  #: an object or a boolean
    resolver: Any
    #: Whether keywords beside $ref count, as from draft 2019-09 on.
    has_siblings: bool = False

    def child(self, contents: Any) -> "JsonNode":
        """Return a subschema of this node."""
        resolver = self.resolver
        if isinstance(contents, dict) and isinstance(contents.get("$id", contents.get("id")), str):
            resolver = resolver.in_subresource(_resource(contents))
        return self._replace(contents=contents, resolver=resolver)

    def resolved(self) -> "JsonNode":
        """Follow $ref to a node without one, or one with other keywords that count.

        :raises InvalidSchema: If it points at nothing, or at itself.
        """
        node = self
        for _ in range(_REFERENCES_MAX):
            reference = node.contents.get("$ref") if isinstance(node.contents, dict) else None
            if not isinstance(reference, str) or (self.has_siblings and len(node.contents) > 1):
                return node
            node = node.target()
        raise InvalidSchema(f"$ref '{reference}' points at itself")

    def target(self) -> "JsonNode":
        """Return what the $ref of this node points at.

        :raises InvalidSchema: If it points at nothing.
        """
        reference = self.contents["$ref"]
        try:
            found = self.resolver.lookup(reference)
        except (Unresolvable, ValueError) as error:
            message = f"$ref '{reference}' cannot be resolved, and no reference has that name"
            raise InvalidSchema(message) from error
        return self._replace(contents=found.contents, resolver=found.resolver)


def document(contents: Any, dependencies: Mapping[str, Any]) -> JsonDocument:
    """Return a document.

    :param dependencies: Other documents, by the name with which $ref points at them.
    :raises InvalidSchema: If it can be no schema at all.
    """
    if not isinstance(contents, dict | bool):
        raise InvalidSchema("a schema must be an object or a boolean")
    resources = [(name, _resource(each)) for name, each in dependencies.items()]

    def retrieve(uri: str) -> SchemaResource:
        """Find a document whose name was resolved against an $id."""
        for name, resource in resources:
            if uri.endswith(f"/{name}"):
                return resource
        raise NoSuchResource(uri)

    resource = _resource(contents)
    registry: Any = Registry(retrieve=retrieve).with_resources(resources)  # type: ignore[call-arg]
    try:
        uri = resource.id() or ""
        registry = registry.with_resource(uri, resource)
        with contextlib.suppress(
            AttributeError, KeyError, TypeError, ValueError
        ):  # damaged, if it is stored already
            registry = registry.crawl()  # or each $ref by a name would search the whole document
    except AttributeError:
        raise InvalidSchema("$id must be a text") from None
    has_siblings = isinstance(contents, dict) and _SIBLINGS.search(str(contents.get("$schema"))) is not None
    return JsonDocument(JsonNode(contents, registry.resolver(uri), has_siblings), registry)


def check_document(root: JsonNode) -> None:
    """Check a document against its metaschema, and that its $ref point at something.

    :raises InvalidSchema: With what is wrong.
    """
    _check_lists(root.contents)
    try:
        draft = validator_class(root.contents)
        draft.check_schema(root.contents, format_checker=format_checker(draft))
    except SchemaError as error:
        raise InvalidSchema(f"{error.json_path}: {error.message}") from None
    _check_references(root)


def _check_lists(root: Any) -> None:
    """Refuse a document of which the check whether values are unique would take too long."""
    keywords = {"type", "disallow"}
    if validator_class(root) in (Draft3Validator, Draft4Validator):
        keywords.add("enum")
    pairs, pending = 0, [root]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending += part
            continue
        if not isinstance(part, dict):
            continue
        pending += part.values()
        dependencies = part.get("dependencies")
        lists = [part[name] for name in keywords if name in part]
        lists += dependencies.values() if isinstance(dependencies, dict) else ()
        pairs += sum(len(each) ** 2 for each in lists if isinstance(each, list) and not _has_one_type(each))
        if pairs > _PAIRS_MAX:
            raise InvalidSchema("a list of type, enum or dependencies has too many values of different types")


def _has_one_type(values: list[Any]) -> bool:
    types = {type(value) for value in values}
    return types <= {str} or types <= {int, float}


def _check_references(root: JsonNode) -> None:
    """Resolve every $ref outside of examples and values."""
    pending, seen = [root], set()
    while pending:
        node = pending.pop()
        if id(node.contents) in seen:
            continue
        seen.add(id(node.contents))
        if isinstance(node.contents, dict):
            if isinstance(node.contents.get("$ref"), str):
                node.resolved()
                pending.append(node.target())
            pending += [node.child(each) for key, each in node.contents.items() if key not in _VALUES]
        elif isinstance(node.contents, list):
            pending += [node.child(each) for each in node.contents]


_VALUES = frozenset(("const", "enum", "default", "examples", "example"))


def _resource(contents: Any) -> SchemaResource:
    dialect = contents.get("$schema") if isinstance(contents, dict) else None
    if not isinstance(dialect, str):
        return DRAFT7.create_resource(contents)
    return specification_with(dialect, default=DRAFT7).create_resource(contents)
