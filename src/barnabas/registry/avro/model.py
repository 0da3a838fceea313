"""The types of a schema of Avro, with full names resolved."""

from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED = ("record", "error", "enum", "fixed")

#: A default that is not there; None is a default of null.
NO_DEFAULT: Any = object()


@dataclass(eq=False)
class AvroField:
    """A field of a record."""

    name: str
    type: "AvroType"
    doc: str | None = None
    default: Any = NO_DEFAULT
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class AvroType:
    """A type; which attributes it has depends on its kind."""

    kind: str  #: a primitive, a named type, array, map or union
    name: str = ""  #: without namespace
    namespace: str = ""
    doc: str | None = None
    aliases: tuple[str, ...] = ()  #: full names
    fields: tuple[AvroField, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None  #: of an enum
    size: int = 0
    items: "AvroType | None" = None  #: of an array or a map
    branches: "tuple[AvroType, ...]" = ()
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """The name that identifies a type: in a union, no two branches have the same."""
        if not self.name:
            return self.kind
        return f"{self.namespace}.{self.name}" if self.namespace else self.name
