"""/compatibility: whether a schema could be registered."""

from typing import Any

from barnabas.registry.call import RegistryCall, RegistryRoute
from barnabas.registry.registration import check_compatible


async def check_version(call: RegistryCall) -> dict[str, Any]:
    return await _check(call, call.version)


async def check_subject(call: RegistryCall) -> dict[str, Any]:
    """Compare with the versions that the level of the subject compares."""
    return await _check(call, None)


async def _check(call: RegistryCall, version: int | None) -> dict[str, Any]:
    request = call.registration()
    problems: list[str] = await call.registry.read(lambda state: check_compatible(state, request, version))
    response: dict[str, Any] = {"is_compatible": not problems}
    if call.flag("verbose"):
        response["messages"] = problems
    return response


ROUTES = (
    RegistryRoute("POST", "/compatibility/subjects/{subject:path}/versions/{version}", check_version),
    RegistryRoute("POST", "/compatibility/subjects/{subject:path}/versions", check_subject),
)
