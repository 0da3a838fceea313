"""/schemas: schemas by their ids."""

from typing import Any

from barnabas.registry import errors
from barnabas.registry.call import PlainText, RegistryCall, RegistryRoute
from barnabas.registry.records import RegisteredVersion
from barnabas.registry.routes.entities import formatted, schema_entity, version_entity
from barnabas.registry.schemas import SchemaType
from barnabas.registry.state import RegistryState


async def list_schemas(call: RegistryCall) -> list[dict[str, Any]]:
    def query(state: RegistryState) -> list[dict[str, Any]]:
        deleted, latest = call.flag("deleted"), call.flag("latestOnly")
        found: list[RegisteredVersion] = []
        for subject in state.subjects(deleted=deleted):
            if call.has_prefix(subject):
                versions = state.versions(subject, deleted=deleted)
                found += versions[-1:] if latest else versions
        return [version_entity(state, each) for each in call.page(found)]

    entities: list[dict[str, Any]] = await call.registry.read(query)
    return entities


async def show(call: RegistryCall) -> dict[str, Any]:
    def query(state: RegistryState) -> dict[str, Any]:
        entity = schema_entity(state, _version_with(call, state).schema, call.query("format"))
        return {**entity, "maxId": state.id_max} if call.flag("fetchMaxId") else entity

    entity: dict[str, Any] = await call.registry.read(query)
    return entity


async def show_text(call: RegistryCall) -> PlainText:
    """Return the text of the schema alone."""
    text = await call.registry.read(
        lambda state: formatted(state, _version_with(call, state).schema, call.query("format"))
    )
    return PlainText(text)


async def list_subjects(call: RegistryCall) -> list[str]:
    names: list[str] = await call.registry.read(
        lambda state: call.page(sorted({each.subject for each in _versions_with(call, state)}))
    )
    return names


async def list_versions(call: RegistryCall) -> list[dict[str, Any]]:
    def query(state: RegistryState) -> list[dict[str, Any]]:
        pairs = sorted((each.subject, each.version) for each in _versions_with(call, state))
        return call.page([{"subject": subject, "version": version} for subject, version in pairs])

    pairs: list[dict[str, Any]] = await call.registry.read(query)
    return pairs


async def list_types(call: RegistryCall) -> list[str]:
    return [SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO]


def _version_with(call: RegistryCall, state: RegistryState) -> RegisteredVersion:
    found = next(iter(state.by_id(call.id)), None)
    if found is None:
        raise errors.schema_not_found(call.id)
    return found


def _versions_with(call: RegistryCall, state: RegistryState) -> list[RegisteredVersion]:
    _version_with(call, state)
    subject = call.query("subject")
    return [
        each
        for each in state.by_id(call.id)
        if (call.flag("deleted") or not each.deleted) and subject in ("", each.subject)
    ]


ROUTES = (
    RegistryRoute("GET", "/schemas", list_schemas),
    RegistryRoute("GET", "/schemas/types", list_types),
    RegistryRoute("GET", "/schemas/ids/{id}", show),
    RegistryRoute("GET", "/schemas/ids/{id}/schema", show_text),
    RegistryRoute("GET", "/schemas/ids/{id}/subjects", list_subjects),
    RegistryRoute("GET", "/schemas/ids/{id}/versions", list_versions),
)
