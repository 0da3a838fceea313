"""One table of what is served: api key -> versions, messages, handler. Read off decorators, never by hand."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from barnabas.wire.errors import KafkaError
from barnabas.wire.schema import Message, Versions

HandlerT = TypeVar("HandlerT", bound=Callable[..., Awaitable[Any]])

#: (context, request) -> response; None where the protocol wants no answer
Handler = Callable[[Any, Any], Awaitable[Any]]
#: (request, error) -> the response that says so in every place where this API says it
Refusal = Callable[[Any, KafkaError], Message]


@dataclass(frozen=True, slots=True)
class ApiSpec:
    """One API as this broker serves it."""

    api_key: int
    name: str
    versions: Versions
    request: type[Message]
    response: type[Message]
    handle: Handler
    refuse: Refusal

    def is_flexible(self, version: int) -> bool:
        """Whether headers carry tagged fields at this version (KIP-482)."""
        return version in self.request.FLEXIBLE


def serves(
    request: type[Message], response: type[Message], first: int, last: int, *, refuse: Refusal
) -> Callable[[HandlerT], HandlerT]:
    """Mark the function `handle` of a module as serving an API. It only marks; `build` registers."""
    assert request.API_KEY == response.API_KEY, (request, response)
    assert first in request.VERSIONS, (request, first)
    assert last in request.VERSIONS, (request, last)

    def mark(handle: HandlerT) -> HandlerT:
        name = request.__name__.removesuffix("Request")
        spec = ApiSpec(request.API_KEY, name, Versions(first, last), request, response, handle, refuse)
        handle.__dict__["api_spec"] = spec
        return handle

    return mark


def build(package: ModuleType) -> Mapping[int, ApiSpec]:
    """The table of every API that a module below `package` serves."""
    table: dict[int, ApiSpec] = {}
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        handle = getattr(importlib.import_module(info.name), "handle", None)
        spec = getattr(handle, "api_spec", None)
        if spec is not None:
            assert spec.api_key not in table, f"api key {spec.api_key} is served twice"
            table[spec.api_key] = spec
    return MappingProxyType(dict(sorted(table.items())))
