"""/subjects and /subjects/SUBJECT: list, look up and delete subjects."""

from typing import Any

from barnabas.registry import errors
from barnabas.registry.call import RegistryCall, RegistryRoute
from barnabas.registry.deletion import decide_subject_deletion
from barnabas.registry.registration import find_registered
from barnabas.registry.routes.entities import metadata_properties, version_entity
from barnabas.registry.state import RegistryState


async def list_subjects(call: RegistryCall) -> list[str]:
    def query(state: RegistryState) -> list[str]:
        only_deleted = call.flag("deletedOnly", "deleted_only")
        found = list(state.subjects(deleted=only_deleted or call.flag("deleted")))
        if only_deleted:
            active = set(state.subjects())
            found = [subject for subject in found if subject not in active]
        return call.page([subject for subject in found if call.has_prefix(subject)])

    names: list[str] = await call.registry.read(query)
    return names


async def look_up(call: RegistryCall) -> dict[str, Any]:
    """Return the version of a subject that has the schema in the request."""
    request = call.registration()

    def query(state: RegistryState) -> dict[str, Any]:
        found = find_registered(state, request, deleted=call.flag("deleted"))
        return version_entity(state, found, call.query("format"))

    entity: dict[str, Any] = await call.registry.read(query)
    return entity


async def show_with_metadata(call: RegistryCall) -> dict[str, Any]:
    """Return the last version whose metadata has the properties in `key` and `value`, which may be repeated."""
    subject, wanted = call.subject, list(zip(call.queries("key"), call.queries("value"), strict=False))

    def query(state: RegistryState) -> dict[str, Any]:
        versions = state.versions(subject, deleted=call.flag("deleted"))
        if not versions:
            raise errors.subject_not_found(subject)
        for version in reversed(versions):
            properties = metadata_properties(version.schema)
            if properties is not None and all(properties.get(key) == value for key, value in wanted):
                return version_entity(state, version, call.query("format"))
        raise errors.schema_not_found()

    entity: dict[str, Any] = await call.registry.read(query)
    return entity


async def delete(call: RegistryCall) -> list[int]:
    subject, permanent = call.subject, call.flag("permanent")
    versions: list[int] = await call.registry.write(
        lambda state: decide_subject_deletion(state, subject, permanent=permanent)
    )
    return versions


ROUTES = (
    RegistryRoute("GET", "/subjects", list_subjects),
    RegistryRoute("GET", "/subjects/{subject:path}/metadata", show_with_metadata),
    RegistryRoute("POST", "/subjects/{subject:path}", look_up),
    RegistryRoute("DELETE", "/subjects/{subject:path}", delete),
)
