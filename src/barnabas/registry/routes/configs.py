"""/config: compatibility levels."""

from typing import Any

from barnabas.registry import errors
from barnabas.registry.call import RegistryCall, RegistryRoute
from barnabas.registry.errors import RegistryError
from barnabas.registry.levels import CompatibilityLevel
from barnabas.registry.records import CompatibilitySetting
from barnabas.registry.settings import decide_level, decide_level_removal
from barnabas.registry.state import RegistryState

_FIELDS = ("compatibility", "compatibilityLevel", "normalize")


async def show(call: RegistryCall) -> dict[str, Any]:
    subject = call.subject

    def query(state: RegistryState) -> dict[str, Any]:
        own = state.setting(subject)
        if subject and own is None and not call.flag("defaultToGlobal"):
            message = f"Subject '{subject}' does not have subject-level compatibility configured"
            raise RegistryError(errors.COMPATIBILITY_NOT_CONFIGURED, message)
        return _entity(CompatibilitySetting(subject, state.level(subject), own.normalizes if own else None))

    entity: dict[str, Any] = await call.registry.read(query)
    return entity


async def update(call: RegistryCall) -> dict[str, Any]:
    subject, body = call.subject, call.body()
    others = [name for name, value in body.items() if name not in _FIELDS and value is not None]
    if others:
        raise RegistryError(errors.INVALID_REQUEST, f"{', '.join(others)}: not supported by this registry")
    name, normalizes = body.get("compatibility", body.get("compatibilityLevel")), body.get("normalize")
    if name is not None and str(name).upper() not in CompatibilityLevel.__members__:
        levels = ", ".join(level.lower() for level in CompatibilityLevel)
        message = f"Invalid compatibility level. Valid values are {levels}"
        raise RegistryError(errors.INVALID_COMPATIBILITY_LEVEL, message)
    if normalizes is not None and not isinstance(normalizes, bool):
        raise RegistryError(errors.INVALID_REQUEST, "normalize must be true or false")
    level = None if name is None else CompatibilityLevel(str(name).upper())
    await call.registry.write(lambda state: decide_level(state, subject, level, normalizes))
    return {
        key: value
        for key, value in (("compatibility", level), ("normalize", normalizes))
        if value is not None
    }


async def delete(call: RegistryCall) -> dict[str, Any]:
    subject = call.subject
    return _entity(await call.registry.write(lambda state: decide_level_removal(state, subject)))


def _entity(setting: CompatibilitySetting) -> dict[str, Any]:
    entity: dict[str, Any] = {}
    if setting.level is not None:
        entity["compatibilityLevel"] = setting.level
    if setting.normalizes is not None:
        entity["normalize"] = setting.normalizes
    return entity


ROUTES = tuple(
    RegistryRoute(method, path, handler)
    for path in ("/config", "/config/{subject:path}")
    for method, handler in (("GET", show), ("PUT", update), ("DELETE", delete))
)
