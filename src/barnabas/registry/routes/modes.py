"""/mode: what may be written."""

from barnabas.registry import errors
from barnabas.registry.call import RegistryCall, RegistryRoute
from barnabas.registry.errors import RegistryError
from barnabas.registry.levels import RegistryMode
from barnabas.registry.settings import decide_mode, decide_mode_removal
from barnabas.registry.state import RegistryState


async def show(call: RegistryCall) -> dict[str, str]:
    subject = call.subject

    def query(state: RegistryState) -> dict[str, str]:
        if subject and state.own_mode(subject) is None and not call.flag("defaultToGlobal"):
            message = f"Subject '{subject}' does not have subject-level mode configured"
            raise RegistryError(errors.MODE_NOT_CONFIGURED, message)
        return {"mode": state.mode(subject)}

    entity: dict[str, str] = await call.registry.read(query)
    return entity


async def update(call: RegistryCall) -> dict[str, str]:
    subject, force = call.subject, call.flag("force")
    name = str(call.body().get("mode") or "").upper()
    if name not in RegistryMode.__members__ or (subject and name == RegistryMode.READONLY_OVERRIDE):
        message = f"Invalid mode. Valid values are {', '.join(RegistryMode)}"
        raise RegistryError(errors.INVALID_MODE, message)
    mode = RegistryMode(name)
    await call.registry.write(lambda state: decide_mode(state, subject, mode, force=force))
    return {"mode": mode}


async def delete(call: RegistryCall) -> dict[str, str]:
    subject = call.subject
    return {"mode": await call.registry.write(lambda state: decide_mode_removal(state, subject))}


ROUTES = tuple(
    RegistryRoute(method, path, handler)
    for path in ("/mode", "/mode/{subject:path}")
    for method, handler in (("GET", show), ("PUT", update), ("DELETE", delete))
)
