"""Writes a schema of Avro as Java's library does, so that both registries store the same text."""

import json
from collections.abc import Mapping
from typing import Any

from barnabas.registry.avro.model import NAMED, NO_DEFAULT, PRIMITIVES, AvroField, AvroType


def canonical_form(root: AvroType, imported: Mapping[str, AvroType], *, sorts: bool = False) -> str:
    """Return the schema without layout, each type defined where it is used first.

    :param imported: Types that references define, by full name.
    :param sorts: Sort what has no order, such as the properties of the author.
    """
    return json.dumps(
        _Writer(imported, sorts=sorts).type(root, ""), ensure_ascii=False, separators=(",", ":")
    )


class _Writer:
    def __init__(self, imported: Mapping[str, AvroType], *, sorts: bool) -> None:
        self._sorts = sorts
        self._written = dict(imported)

    def type(self, node: AvroType, namespace: str) -> Any:
        """Return a type as JSON, in the given namespace."""
        if node.kind == "union":
            return [self.type(branch, namespace) for branch in node.branches]
        if node.kind in PRIMITIVES:
            return {"type": node.kind, **self._properties(node.properties)} if node.properties else node.kind
        if node.kind in NAMED:
            return self._named(node, namespace)
        assert node.items is not None
        items = {"items" if node.kind == "array" else "values": self.type(node.items, namespace)}
        return {"type": node.kind, **items, **self._properties(node.properties)}

    def _named(self, node: AvroType, namespace: str) -> Any:
        if self._written.get(node.full_name) is node:
            is_short = node.namespace == namespace and node.name not in PRIMITIVES
            return node.name if is_short else node.full_name
        self._written[node.full_name] = node
        parts: dict[str, Any] = {"type": node.kind, "name": node.name}
        if node.namespace != namespace:
            parts["namespace"] = node.namespace
        if node.doc is not None:
            parts["doc"] = node.doc
        if node.kind == "enum":
            parts["symbols"] = list(node.symbols)
            if node.default is not None:
                parts["default"] = node.default
        elif node.kind == "fixed":
            parts["size"] = node.size
        else:
            parts["fields"] = [self._field(each, node.namespace) for each in node.fields]
        parts |= self._properties(node.properties)
        if node.aliases:
            parts["aliases"] = [_short(alias, node.namespace) for alias in node.aliases]
        return parts

    def _field(self, field: AvroField, namespace: str) -> dict[str, Any]:
        parts: dict[str, Any] = {"name": field.name, "type": self.type(field.type, namespace)}
        if field.doc is not None:
            parts["doc"] = field.doc
        if field.default is not NO_DEFAULT:
            parts["default"] = field.default
        if field.order != "ascending":
            parts["order"] = field.order
        if field.aliases:
            parts["aliases"] = list(field.aliases)
        return parts | self._properties(field.properties)

    def _properties(self, properties: dict[str, Any]) -> dict[str, Any]:
        return dict(sorted(properties.items())) if self._sorts else properties


def _short(name: str, namespace: str) -> str:
    own, _, rest = name.rpartition(".")
    return rest if own == namespace else name
