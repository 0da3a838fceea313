"""Parses schemas of every type, with their references."""

from collections.abc import Callable
from functools import lru_cache

from barnabas.registry.schemas import InvalidSchema, ParsedSchema, SchemaReference, SchemaText, SchemaType

#: Returns the schema that a reference names, or None.
Lookup = Callable[[SchemaReference], SchemaText | None]

_REFERENCES_MAX = 1_000
#: Parsed schemas that are kept: each registration compares with versions of its subject.
_CACHED_MAX = 1_000
_CACHED_CHARACTERS_MAX = 20_000


def parse_schema(schema: SchemaText, lookup: Lookup, *, is_new: bool = False) -> ParsedSchema:
    """Return a schema of any type.

    :param is_new: Whether rules hold that stored schemas may be older than.
    :raises InvalidSchema: With what is wrong.
    """
    dependencies: dict[str, str] = {}
    _resolve(schema, lookup, dependencies, ())
    parse = _parsed if len(schema.text) <= _CACHED_CHARACTERS_MAX else _parsed.__wrapped__
    return parse(schema.type, schema.text, tuple(dependencies.items()), is_new)


@lru_cache(_CACHED_MAX)
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
