"""Compares a new schema with versions of a subject, at a compatibility level."""

from collections.abc import Callable, Sequence

from barnabas.registry.levels import CompatibilityLevel
from barnabas.registry.records import RegisteredVersion
from barnabas.registry.schemas import InvalidSchema, ParsedSchema, SchemaText

_SHOWN_TEXT_CHARS = 2_000


def compatibility_problems(
    schema: SchemaText,
    parsed: ParsedSchema,
    versions: Sequence[RegisteredVersion],
    level: CompatibilityLevel,
    parse: Callable[[SchemaText], ParsedSchema],
) -> list[str]:
    """Return why a schema is not compatible with versions, in order; empty if it is.

    The last version is compared first, and only the first that is incompatible is reported.
    """
    if level is CompatibilityLevel.NONE:
        return []
    compared = versions if level.is_transitive else versions[-1:]
    for version in reversed(compared):
        try:
            problems = _problems_with(schema, parsed, version, level, parse)
        except RecursionError:
            problems = [f"the schemas are nested too deeply to be compared with version {version.version}"]
        if problems:
            return [
                *problems,
                f"{{oldSchemaVersion: {version.version}}}",
                f"{{oldSchema: '{version.schema.text[:_SHOWN_TEXT_CHARS]}'}}",
                f"{{compatibility: '{level}'}}",
            ]
    return []


def _problems_with(
    schema: SchemaText,
    parsed: ParsedSchema,
    version: RegisteredVersion,
    level: CompatibilityLevel,
    parse: Callable[[SchemaText], ParsedSchema],
) -> list[str]:
    if version.schema.type is not schema.type:
        return [f"the type is {schema.type}, that of version {version.version} is {version.schema.type}"]
    try:
        earlier = parse(version.schema)
    except InvalidSchema as error:
        return [f"version {version.version} is not valid: {error}"]
    problems = []
    if level.is_backward:
        problems += [
            f"{{errorType: '{each.error}', description: 'the new schema cannot read data of version "
            f"{version.version}, at {each.path or '/'}: {each.description}'}}"
            for each in parsed.problems_with(earlier)
        ]
    if level.is_forward:
        problems += [
            f"{{errorType: '{each.error}', description: 'version {version.version} cannot read data of "
            f"the new schema, at {each.path or '/'}: {each.description}'}}"
            for each in earlier.problems_with(parsed)
        ]
    return problems
