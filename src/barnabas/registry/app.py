"""The REST API of the registry, as a Starlette application."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from barnabas.base.hosts import is_loopback, is_own_host, own_names
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.cluster import ClusterClient
from barnabas.registry.basic_auth import BasicAuth
from barnabas.registry.call import PlainText, RegistryCall, RegistryRoute
from barnabas.registry.errors import STORE_ERROR, TIMED_OUT, RegistryError
from barnabas.registry.registry import SchemaRegistry
from barnabas.registry.routes import compatibility, configs, modes, schemas, server, subjects, versions
from barnabas.registry.schema_log import TOPIC_DEFAULT
from barnabas.telemetry.logs import get_logger
from barnabas.tls.settings import TlsSettings
from barnabas.wire.errors import KafkaError

_log = get_logger("barnabas.registry")

#: Content types of Confluent's API, the preferred one first.
_CONTENT_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
_GENERIC = "application/octet-stream"
_BODY_MAX_BYTES = 8 * 1024 * 1024
#: Versions come before subjects, whose names may contain slashes.
_ROUTES: tuple[RegistryRoute, ...] = (
    *server.ROUTES,
    *schemas.ROUTES,
    *compatibility.ROUTES,
    *versions.ROUTES,
    *subjects.ROUTES,
    *configs.ROUTES,
    *modes.ROUTES,
)

CLIENT_ID = "barnabas-registry"


@dataclass(frozen=True)
class RegistrySettings:
    """The cluster and the limits of a registry."""

    bootstrap: str  #: host:port, several with commas
    topic: str = TOPIC_DEFAULT
    login: SaslLogin | None = None
    tls: TlsSettings | None = None  #: of the connections to the brokers
    hosts: tuple[str, ...] | None = (
        None  #: the only names that clients may use, beside this machine's; None for any
    )
    start_timeout_ms: int = 30_000  #: how long a request waits until the topic is read
    users_file: str = ""  #: with a NAME=PASSWORD in each line for HTTP basic authentication; empty for none

    @classmethod
    def on(cls, address: str, bootstrap: str, **settings: Any) -> Self:
        """Return the settings of a registry that listens on an address.

        On a loopback address it may have no other name, so that no page of another site can read it (DNS rebinding).
        """
        return cls(bootstrap, hosts=() if is_loopback(address) else None, **settings)


def create_registry_app(settings: RegistrySettings) -> Starlette:
    """Return the application, which connects when it is started.

    :raises ValueError: If the file of users cannot be used.
    """
    api = _Api(settings)
    routes = [Route(route.path, api.endpoint(route), methods=[route.method]) for route in _ROUTES]
    return Starlette(routes=routes, lifespan=api.lifespan, exception_handlers={HTTPException: _http_error})


class _Api:
    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._hosts = None if settings.hosts is None else own_names(settings.hosts)
        self._auth = BasicAuth(settings.users_file) if settings.users_file else None
        self._registry: SchemaRegistry | None = None
        self._ready = asyncio.Event()
        self._problem = ""

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Connect, for as long as the application runs."""
        settings = self._settings
        cluster = ClusterClient(
            settings.bootstrap, client_id=CLIENT_ID, login=settings.login, tls=settings.tls
        )
        starting = asyncio.ensure_future(self._start(cluster))
        try:
            yield
        finally:
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            if self._registry is not None:
                await self._registry.close()
            await cluster.close()

    async def _start(self, cluster: ClusterClient) -> None:
        """Start the registry, again and again until the cluster lets it."""
        attempts = 0
        while True:
            registry = SchemaRegistry(cluster, self._settings.topic)
            try:
                await cluster.connect()
                await registry.start()
            except (KafkaError, ConnectionError) as error:
                await registry.close()
                attempts += 1
                if str(error) != self._problem:
                    self._problem = str(error)
                    _log.error(
                        "the schema registry cannot start", topic=self._settings.topic, reason=str(error)
                    )
                await cluster.retry.pause(attempts)
                continue
            self._registry = registry
            self._ready.set()
            return

    def endpoint(self, route: RegistryRoute) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a route."""

        async def respond(request: Request) -> Response:
            try:
                self._check(request)
                call = RegistryCall(await self._started(), request, await _body_of(request))
                result = await route.handler(call)
            except RegistryError as error:
                return _json(error.as_json(), request, error.status, error.code)
            if isinstance(result, PlainText):
                return PlainTextResponse(result, media_type=_content_type(request))
            return _json(result, request)

        return respond

    async def _started(self) -> SchemaRegistry:
        try:
            async with asyncio.timeout(self._settings.start_timeout_ms / 1000):
                await self._ready.wait()
        except TimeoutError:
            code = STORE_ERROR if self._problem else TIMED_OUT
            raise RegistryError(code, self._problem or "the topic of schemas is not read yet") from None
        assert self._registry is not None
        return self._registry

    def _check(self, request: Request) -> None:
        """:raises RegistryError: If the request is for another host, from nobody, or from a form of a browser."""
        host = request.headers.get("host", "")
        if self._hosts is not None and host and not is_own_host(host, self._hosts):
            raise RegistryError(421, f"{host!r} is not a known host name of this registry")
        if self._auth is not None and not self._auth.admits(request.headers.get("authorization", "")):
            raise RegistryError(401, "Unauthorized")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind and request.method in ("POST", "PUT") and kind not in (*_CONTENT_TYPES, _GENERIC):
            raise RegistryError(415, f"HTTP 415 Unsupported Media Type: {kind}")


async def _body_of(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY_MAX_BYTES:
            raise RegistryError(413, f"the request is larger than {_BODY_MAX_BYTES} bytes")
    return bytes(body)


def _content_type(request: Request) -> str:
    accepted = request.headers.get("accept", "")
    return next((each for each in _CONTENT_TYPES if each in accepted), _CONTENT_TYPES[0])


def _json(content: object, request: Request, status: int = 200, code: int = 0) -> Response:
    headers = {"WWW-Authenticate": 'Basic realm="schema registry"'} if code == 401 else None
    return JSONResponse(content, status, headers=headers, media_type=_content_type(request))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    return _json({"error_code": status, "message": f"HTTP {status} {error.detail}"}, request, status)
