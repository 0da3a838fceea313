"""The table of served APIs: api key -> versions, messages, handler. It is built from decorators."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from barnabas.wire.errors import KafkaError
from barnabas.wire.schema import VERSION_MAX, Message, Versions

HandlerT = TypeVar("HandlerT", bound=Callable[..., Awaitable[Any]])

#: (context, request) -> response; None if the request has no response
Handler = Callable[[Any, Any], Awaitable[Any]]
#: (context, frame, position of the body) -> encoded response or None, a coroutine of it if something has to wait, or
#: USE_HANDLER
FastPath = Callable[[Any, memoryview, int], Any]
#: (request, error) -> the response with the error in every field that this API has for it
ErrorResponse = Callable[[Any, KafkaError], Message]
#: (request, response) -> resource, error code and message of each requested change
AuditReader = Callable[[Any, Any], Iterable[tuple[str, int, str | None]]]


class UseHandler(Enum):
    """The result of a fast path that leaves the request to the handler; nothing has been done for it."""

    USE_HANDLER = "use the handler"


USE_HANDLER = UseHandler.USE_HANDLER


@dataclass(frozen=True, slots=True)
class ApiSpec:
    """A served API."""

    api_key: int
    name: str
    versions: Versions
    request: type[Message]
    response: type[Message]
    handle: Handler
    error_response: ErrorResponse
    #: Reads the request from its frame and writes the response without message objects.
    fast_path: FastPath | None = None
    #: Reads the results of a response for the audit; None for APIs that do not change the cluster.
    audit: AuditReader | None = None
    #: Whether a request with an error gets no response, and its connection is closed (Produce with acks=0).
    is_unanswered: Callable[[Any], bool] | None = None
    #: Requests carry records: they are views of the frame, bounded by `socket.request.max.bytes` alone, and count for
    #: the produce quota.
    carries_records: bool = False
    #: Requests negotiate versions (KIP-511): an unknown version is answered at version 0, with a response header v0.
    negotiates_versions: bool = False
    #: Requests of clients that are not authenticated yet, which have no quota.
    authenticates: bool = False
    #: Requests are decided on the latest metadata, as by Kafka's controller. Others are on the broker's copy of it,
    #: which may be some milliseconds behind.
    needs_latest_metadata: bool = False

    #: The first version whose headers carry tagged fields (KIP-482).
    first_flexible_version: int = VERSION_MAX + 1

    def is_flexible(self, version: int) -> bool:
        """Whether headers carry tagged fields at this version (KIP-482)."""
        return version >= self.first_flexible_version


def serves(
    request: type[Message],
    response: type[Message],
    first: int,
    last: int,
    *,
    error_response: ErrorResponse,
    fast_path: FastPath | None = None,
    audit: AuditReader | None = None,
    is_unanswered: Callable[[Any], bool] | None = None,
    carries_records: bool = False,
    negotiates_versions: bool = False,
    authenticates: bool = False,
    needs_latest_metadata: bool = False,
) -> Callable[[HandlerT], HandlerT]:
    """Mark the function `handle` of a module as serving an API. `build` finds it."""
    assert request.API_KEY == response.API_KEY, (request, response)
    assert first in request.VERSIONS, (request, first)
    assert last in request.VERSIONS, (request, last)

    def mark(handle: HandlerT) -> HandlerT:
        name = request.__name__.removesuffix("Request")
        flexible = request.FLEXIBLE
        spec = ApiSpec(
            request.API_KEY,
            name,
            Versions(first, last),
            request,
            response,
            handle,
            error_response,
            fast_path,
            audit,
            is_unanswered,
            carries_records,
            negotiates_versions,
            authenticates,
            needs_latest_metadata,
            flexible.first if flexible.last >= 0 else VERSION_MAX + 1,
        )
        handle.__dict__["api_spec"] = spec
        return handle

    return mark


def build(package: ModuleType) -> Mapping[int, ApiSpec]:
    """Return the table of all APIs in the modules of `package`."""
    table: dict[int, ApiSpec] = {}
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        handle = getattr(importlib.import_module(info.name), "handle", None)
        spec = getattr(handle, "api_spec", None)
        if spec is not None:
            assert spec.api_key not in table, f"api key {spec.api_key} is served twice"
            table[spec.api_key] = spec
    return MappingProxyType(dict(sorted(table.items())))
