"""Decides on registrations and look-ups of schemas."""

from dataclasses import replace
from typing import Any, NamedTuple

from barnabas.registry import errors
from barnabas.registry.compatibility import compatibility_problems
from barnabas.registry.errors import RegistryError
from barnabas.registry.levels import RegistryMode
from barnabas.registry.parsing import parse_schema
from barnabas.registry.records import RegisteredVersion, RegistryRecord, RemovedVersion
from barnabas.registry.schemas import InvalidSchema, ParsedSchema, SchemaReference, SchemaText, SchemaType
from barnabas.registry.standalone import standalone_schema
from barnabas.registry.state import LATEST, RegistryState


class RegistryDecision(NamedTuple):
    """The result of a request, and the records that must be in the topic before it is returned."""

    result: Any
    records: tuple[RegistryRecord, ...] = ()


class RegistrationRequest(NamedTuple):
    """A schema to register; version and id only in the mode IMPORT."""

    subject: str
    schema: SchemaText
    normalizes: bool = False
    version: int | None = None
    id: int | None = None


def decide_registration(state: RegistryState, request: RegistrationRequest) -> RegistryDecision:
    """Register a schema, unless the subject has it already; the result is its id.

    :raises RegistryError: If the schema is not valid or not compatible, or the mode does not permit it.
    """
    subject = request.subject
    stored, _ = stored_form(state, request)
    existing = _find_registered(state, subject, stored)
    if existing is not None and request.id in (None, existing.id):
        return RegistryDecision(existing.id)
    check_writable(state, subject)
    if state.mode(subject) is RegistryMode.IMPORT:
        return _import(state, request, stored)
    if request.id is not None:
        raise RegistryError(errors.OPERATION_NOT_PERMITTED, f"Subject {subject} is not in import mode")
    stored, parsed = stored_form(state, request, is_new=True)
    stored = _with_inherited(state, subject, stored)
    problems = compatibility_problems(
        stored, parsed, state.versions(subject), state.level(subject), lambda schema: parsed_of(state, schema)
    )
    if problems:
        message = (
            f"Schema being registered is incompatible with an earlier schema for subject "
            f'"{subject}", details: [{", ".join(problems)}]'
        )
        raise RegistryError(errors.INCOMPATIBLE_SCHEMA, message)
    version = state.next_version(subject)
    if request.version not in (None, 0, version):
        message = (
            f"Version {request.version} is not the next version of subject {subject}, which is {version}"
        )
        raise RegistryError(errors.INVALID_SCHEMA, message)
    known = state.id_of(stored)
    schema_id = state.id_max + 1 if known is None else known
    new = RegisteredVersion(subject, version, schema_id, stored)
    return RegistryDecision(schema_id, (new, *_superseded(state, new)))


def _import(state: RegistryState, request: RegistrationRequest, stored: SchemaText) -> RegistryDecision:
    if request.id is None:
        raise RegistryError(errors.OPERATION_NOT_PERMITTED, "a schema must have an id in mode IMPORT")
    others = state.by_id(request.id)
    if any(each.schema != stored for each in others):
        message = f"Overwrite new schema with id {request.id} is not permitted."
        raise RegistryError(errors.OPERATION_NOT_PERMITTED, message)
    version = request.version or state.next_version(request.subject)
    return RegistryDecision(request.id, (RegisteredVersion(request.subject, version, request.id, stored),))


def _superseded(state: RegistryState, new: RegisteredVersion) -> list[RemovedVersion]:
    """Return the deleted versions with the same schema, whose id the new one keeps."""
    return [
        RemovedVersion(each.subject, each.version)
        for each in state.versions(new.subject, deleted=True)
        if each.deleted and each.id == new.id
    ]


def find_registered(
    state: RegistryState, request: RegistrationRequest, *, deleted: bool
) -> RegisteredVersion:
    """Return the version of a subject that has this schema.

    :raises RegistryError: If no version has it, or it is not valid.
    """
    stored, _ = stored_form(state, request)
    found = _find_registered(state, request.subject, stored, deleted=deleted)
    if found is not None:
        return found
    if not state.versions(request.subject, deleted=deleted):
        raise errors.subject_not_found(request.subject)
    raise errors.schema_not_found()


def check_compatible(state: RegistryState, request: RegistrationRequest, version: int | None) -> list[str]:
    """Return why a schema is not compatible with a version of its subject, or with those that its level compares.

    :raises RegistryError: If the schema is not valid, or the version does not exist.
    """
    subject = request.subject
    stored, parsed = stored_form(state, request, is_new=True)
    if version is None:
        versions = state.versions(subject)
    else:
        found = state.version(subject, version)
        if found is None and version != LATEST:
            raise errors.version_not_found(version)
        versions = [] if found is None else [found]
    return compatibility_problems(
        stored, parsed, versions, state.level(subject), lambda schema: parsed_of(state, schema)
    )


def stored_form(
    state: RegistryState, request: RegistrationRequest, *, is_new: bool = False
) -> tuple[SchemaText, ParsedSchema]:
    """Return a schema as it would be stored.

    :param is_new: Whether rules hold that stored schemas may be older than.
    :raises RegistryError: If it is not valid.
    """
    schema = request.schema
    references = tuple(_with_version(state, reference) for reference in schema.references)
    resolved = SchemaText(schema.type, schema.text, references, schema.metadata, schema.rule_set)
    try:
        parsed = parsed_of(state, resolved, is_new=is_new)
        is_normalized = request.normalizes or state.normalizes(request.subject)
        text = parsed.normalized if is_normalized else parsed.canonical
        references = tuple(sorted(references)) if is_normalized else references
        text.encode()
    except (InvalidSchema, RecursionError, UnicodeEncodeError) as error:
        message = f"Invalid schema of type {schema.type}, details: {_reason(error)}"
        raise RegistryError(errors.INVALID_SCHEMA, message) from None
    return SchemaText(schema.type, text, references, schema.metadata, schema.rule_set), parsed


def _reason(error: Exception) -> str:
    match error:
        case RecursionError():
            return "the schema is nested too deeply"
        case UnicodeEncodeError():
            return "a text has half of a surrogate pair"
        case _:
            return str(error)


def _with_version(state: RegistryState, reference: SchemaReference) -> SchemaReference:
    """Return the reference with the number of the version that `latest` is."""
    if reference.version != LATEST:
        return reference
    latest = state.version(reference.subject, LATEST)
    return reference if latest is None else reference._replace(version=latest.version)


def parsed_of(state: RegistryState, schema: SchemaText, *, is_new: bool = False) -> ParsedSchema:
    """Parse a schema whose references are in this registry; deleted ones count, as they are still used.

    :raises InvalidSchema: With what is wrong.
    """

    def lookup(reference: SchemaReference) -> SchemaText | None:
        found = state.version(reference.subject, reference.version, deleted=not is_new)
        return None if found is None else found.schema

    return parse_schema(schema, lookup, is_new=is_new)


def _find_registered(
    state: RegistryState, subject: str, stored: SchemaText, *, deleted: bool = False
) -> RegisteredVersion | None:
    """Return the version with a schema, or with that and what it would inherit."""
    found = _find_equal(state, subject, stored, deleted=deleted)
    inheriting = _with_inherited(state, subject, stored)
    if found is not None or inheriting == stored:
        return found
    return _find_equal(state, subject, inheriting, deleted=deleted)


def _with_inherited(state: RegistryState, subject: str, schema: SchemaText) -> SchemaText:
    """Return a schema with the metadata and the rules of the last version, if it has none itself."""
    latest = state.version(subject, LATEST)
    if latest is None:
        return schema
    return replace(
        schema,
        metadata=schema.metadata or latest.schema.metadata,
        rule_set=schema.rule_set or latest.schema.rule_set,
    )


def _find_equal(
    state: RegistryState, subject: str, stored: SchemaText, *, deleted: bool = False
) -> RegisteredVersion | None:
    """Return the last version with the same schema, also if another registry stored it with other layout."""
    versions = [
        each
        for each in reversed(state.versions(subject, deleted=deleted))
        if each.schema.type is stored.type
        and (each.schema.metadata, each.schema.rule_set) == (stored.metadata, stored.rule_set)
    ]
    same = [each for each in versions if sorted(each.schema.references) == sorted(stored.references)]
    exact = next((each for each in same if each.schema.text == stored.text), None)
    if exact is not None:
        return exact
    found = next((each for each in same if _canonical(state, each.schema) == stored.text), None)
    return found or _find_with_references(state, versions, stored)


def _canonical(state: RegistryState, schema: SchemaText) -> str:
    try:
        return parsed_of(state, schema).canonical
    except InvalidSchema:
        return schema.text


def _find_with_references(
    state: RegistryState, versions: list[RegisteredVersion], stored: SchemaText
) -> RegisteredVersion | None:
    """Return the first version of Avro that refers to types that a schema without references defines itself.

    Java's generated classes have such schemas.
    """
    if stored.references or stored.type is not SchemaType.AVRO:
        return None
    return next(
        (
            each
            for each in versions
            if each.schema.references and _standalone(state, each.schema) == stored.text
        ),
        None,
    )


def _standalone(state: RegistryState, schema: SchemaText) -> str:
    try:
        return standalone_schema(parsed_of(state, schema)).decode()
    except (InvalidSchema, RecursionError):
        return ""


def check_writable(state: RegistryState, subject: str) -> None:
    """:raises RegistryError: If the mode permits no changes of a subject."""
    if state.mode(subject) in (RegistryMode.READONLY, RegistryMode.READONLY_OVERRIDE):
        raise RegistryError(errors.OPERATION_NOT_PERMITTED, f"Subject {subject} is in read-only mode")
