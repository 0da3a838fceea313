"""Parses schemas of every type, with their references."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from barnabas.registry.schemas import InvalidSchema, ParsedSchema, SchemaReference, SchemaText, SchemaType

#: Returns the schema that a reference names, or None.
Lookup = Callable[[SchemaReference], SchemaText | None]

_REFERENCES_MAX = 1_000
#: Texts of the parsed schemas that are kept, with those that they refer to; each takes some 20 times as much memory.
KEPT_CHARACTERS_MAX = 10_000_000


def parse_schema(schema: SchemaText, lookup: Lookup, *, is_new: bool = False) -> ParsedSchema:
    """Return a schema of any type.

    :param is_new: Whether rules hold that stored schemas may be older than.
    :raises InvalidSchema: With what is wrong.
    """
    dependencies: dict[str, str] = {}
    _resolve(schema, lookup, dependencies, ())
    unparsed = _Unparsed(schema.type, schema.text, tuple(dependencies.items()), is_new)
    parsed = _kept.get(unparsed)
    if parsed is None:
        parsed = _parsed(*unparsed)
        _kept.put(unparsed, parsed)
    return parsed


class _Unparsed(NamedTuple):
    """All that a parsed schema depends on."""

    kind: SchemaType
    text: str
    dependencies: tuple[tuple[str, str], ...]
    is_new: bool

    @property
    def characters(self) -> int:
        return len(self.text) + sum(len(text) for _, text in self.dependencies)


class _KeptSchemas:
    """The schemas that were used last: each registration compares with versions of its subject."""

    def __init__(self) -> None:
        self._schemas: OrderedDict[_Unparsed, ParsedSchema] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def get(self, unparsed: _Unparsed) -> ParsedSchema | None:
        with self._lock:
            parsed = self._schemas.get(unparsed)
            if parsed is not None:
                self._schemas.move_to_end(unparsed)
            return parsed

    def put(self, unparsed: _Unparsed, parsed: ParsedSchema) -> None:
        """Keep a schema, and drop those that were not used for longest if there are too many."""
        with self._lock:
            if unparsed not in self._schemas:
                self._characters += unparsed.characters
            self._schemas[unparsed] = parsed
            while self._characters > KEPT_CHARACTERS_MAX:
                dropped, _ = self._schemas.popitem(last=False)
                self._characters -= dropped.characters


_kept = _KeptSchemas()


def _parsed(
    kind: SchemaType, text: str, dependencies: tuple[tuple[str, str], ...], is_new: bool
) -> ParsedSchema:
    # heavy: only schemas of a type need its library
    match kind:
        case SchemaType.AVRO:
            from barnabas.registry.avro.schema import AvroSchema

            return AvroSchema.parse(text, dict(dependencies), is_new=is_new)
        case SchemaType.JSON:
            from barnabas.registry.json_schema.schema import JsonSchema

            return JsonSchema.parse(text, dict(dependencies), is_new=is_new)
        case SchemaType.PROTOBUF:
            from barnabas.registry.protobuf.schema import ProtobufSchema

            return ProtobufSchema.parse(text, dict(dependencies), is_new=is_new)


def _resolve(
    schema: SchemaText, lookup: Lookup, dependencies: dict[str, str], outer: tuple[SchemaReference, ...]
) -> None:
    """Add the texts of all references, those of the innermost first."""
    for reference in schema.references:
        if reference in outer:
            raise InvalidSchema(f"the reference '{reference.name}' leads back to itself")
        if reference.name in dependencies:
            continue
        if len(outer) >= _REFERENCES_MAX:
            raise InvalidSchema("the references are nested too deeply")
        found = lookup(reference)
        if found is None:
            raise InvalidSchema(
                f"the reference '{reference.name}' is not found: subject '{reference.subject}', "
                f"version {reference.version}"
            )
        if found.type is not schema.type:
            raise InvalidSchema(
                f"the reference '{reference.name}' is of type {found.type}, not {schema.type}"
            )
        _resolve(found, lookup, dependencies, (*outer, reference))
        dependencies[reference.name] = found.text
