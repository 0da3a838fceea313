"""/subjects/SUBJECT/versions: register, list, return and delete versions."""

from typing import Any

from barnabas.registry import errors
from barnabas.registry.call import PlainText, RegistryCall, RegistryRoute
from barnabas.registry.deletion import decide_version_deletion
from barnabas.registry.records import RegisteredVersion
from barnabas.registry.registration import decide_registration
from barnabas.registry.routes.entities import formatted, version_entity
from barnabas.registry.state import RegistryState


async def register(call: RegistryCall) -> dict[str, int]:
    request = call.registration()
    schema_id = await call.registry.write(lambda state: decide_registration(state, request), at_once=True)
    return {"id": schema_id}


async def list_versions(call: RegistryCall) -> list[int]:
    subject = call.subject

    def query(state: RegistryState) -> list[int]:
        only_deleted = call.flag("deletedOnly", "deleted_only")
        versions = state.versions(subject, deleted=only_deleted or call.flag("deleted"))
        if not versions:
            raise errors.subject_not_found(subject)
        return call.page([each.version for each in versions if each.deleted or not only_deleted])

    numbers: list[int] = await call.registry.read(query)
    return numbers


async def show(call: RegistryCall) -> dict[str, Any]:
    entity: dict[str, Any] = await call.registry.read(
        lambda state: version_entity(state, _version_of(call, state), call.query("format"))
    )
    return entity


async def show_text(call: RegistryCall) -> PlainText:
    """Return the text of the schema alone."""
    text = await call.registry.read(
        lambda state: formatted(state, _version_of(call, state).schema, call.query("format"))
    )
    return PlainText(text)


async def list_referrers(call: RegistryCall) -> list[int]:
    """Return the ids of schemas that refer to the version."""

    def query(state: RegistryState) -> list[int]:
        version = _version_of(call, state, deleted=True)
        return call.page(sorted({each.id for each in state.referrers(version.subject, version.version)}))

    ids: list[int] = await call.registry.read(query)
    return ids


async def delete(call: RegistryCall) -> int:
    subject, version, permanent = call.subject, call.version, call.flag("permanent")
    number: int = await call.registry.write(
        lambda state: decide_version_deletion(state, subject, version, permanent=permanent)
    )
    return number


def _version_of(call: RegistryCall, state: RegistryState, *, deleted: bool = False) -> RegisteredVersion:
    subject, version = call.subject, call.version
    with_deleted = deleted or call.flag("deleted")
    found = state.version(subject, version, deleted=with_deleted)
    if found is None:
        known = state.versions(subject, deleted=with_deleted)
        raise errors.version_not_found(version) if known else errors.subject_not_found(subject)
    return found


ROUTES = (
    RegistryRoute("POST", "/subjects/{subject:path}/versions", register),
    RegistryRoute("GET", "/subjects/{subject:path}/versions", list_versions),
    RegistryRoute("GET", "/subjects/{subject:path}/versions/{version}", show),
    RegistryRoute("GET", "/subjects/{subject:path}/versions/{version}/schema", show_text),
    RegistryRoute("GET", "/subjects/{subject:path}/versions/{version}/referencedby", list_referrers),
    RegistryRoute("DELETE", "/subjects/{subject:path}/versions/{version}", delete),
)
