"""The REST API of the registry, as a Starlette application."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.base.hosts import is_own_host, own_names
from barnabas.client.core.cluster import ClusterClient
from barnabas.registry.basic_auth import BasicAuth
from barnabas.registry.call import PlainText, RegistryCall, RegistryRoute
from barnabas.registry.errors import STORE_ERROR, TIMED_OUT, RegistryError
from barnabas.registry.media_types import GENERIC_MEDIA_TYPE, MEDIA_TYPES, accepted_type
from barnabas.registry.options import RegistrySettings
from barnabas.registry.registry import SchemaRegistry
from barnabas.registry.routes import compatibility, configs, modes, schemas, server, subjects, versions
from barnabas.registry.schema_log import SchemaLog
from barnabas.telemetry.logs import get_logger
from barnabas.web.origins import SAFE_METHODS, is_same_origin
from barnabas.wire.errors import KafkaError

_log = get_logger("barnabas.registry")

_BODY_MAX_BYTES = 8 * 1024 * 1024
#: Connections are limited in number, and must not be held by requests that never end.
_BODY_S = 30.0
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


def create_registry_app(settings: RegistrySettings) -> Starlette:
    """Return the application, which connects when it is started.

    :raises ValueError: If the file of users cannot be used.
    """
    api = _Api(settings)
    routes = [Route(route.path, api.endpoint(route), methods=[route.method]) for route in _ROUTES]
    handlers = {HTTPException: _http_error, Exception: _internal_error}
    app = Starlette(routes=routes, lifespan=api.lifespan, exception_handlers=handlers)
    app.add_middleware(_WithoutTrailingSlash)
    return app


class _WithoutTrailingSlash:
    """Routes an address that ends with a slash as if it did not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request (ASGI)."""
        if scope["type"] == "http" and scope["path"] != "/" and scope["raw_path"].endswith(b"/"):
            scope = {**scope, "path": scope["path"].removesuffix("/")}
        await self._app(scope, receive, send)


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
            registry = SchemaRegistry(cluster, SchemaLog(cluster, self._settings.topic))
            try:
                await cluster.connect()
                await registry.start()
            except (KafkaError, ConnectionError) as error:
                await registry.close()
                attempts += 1
                if str(error) != self._problem:
                    self._problem = str(error)
                    _log.error(
                        "the schema registry cannot start yet; trying again",
                        topic=self._settings.topic,
                        reason=self._problem,
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
        """:raises RegistryError: For another host, from a page of another site, or without a valid password."""
        host = request.headers.get("host", "")
        if self._hosts is not None and host and not is_own_host(host, self._hosts):
            raise RegistryError(421, f"{host!r} is not a known host name of this registry")
        if request.method not in SAFE_METHODS and not is_same_origin(request.headers):
            raise RegistryError(403, "a page of another site sent the request")
        address = request.client.host if request.client is not None else ""
        if self._auth is not None and not self._auth.admits(
            request.headers.get("authorization", ""), address
        ):
            raise RegistryError(401, "Unauthorized")
        if accepted_type(request.headers.get("accept", "")) is None:
            raise RegistryError(406, "HTTP 406 Not Acceptable")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind and request.method in ("POST", "PUT") and kind not in (*MEDIA_TYPES, GENERIC_MEDIA_TYPE):
            raise RegistryError(415, "HTTP 415 Unsupported Media Type")


async def _body_of(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _BODY_MAX_BYTES:
                    raise RegistryError(413, f"the request is larger than {_BODY_MAX_BYTES} bytes")
    except TimeoutError:
        raise RegistryError(408, f"the request was not complete within {_BODY_S:.0f} s") from None
    except ClientDisconnect:
        raise RegistryError(400, "the client has gone before its request was complete") from None
    return bytes(body)


def _content_type(request: Request) -> str:
    return accepted_type(request.headers.get("accept", "")) or MEDIA_TYPES[0]


def _json(content: object, request: Request, status: int = 200, code: int = 0) -> Response:
    headers = {"WWW-Authenticate": 'Basic realm="schema registry"'} if code == 401 else None
    return _JsonResponse(content, status, headers=headers, media_type=_content_type(request))


class _JsonResponse(JSONResponse):
    def render(self, content: Any) -> bytes:
        """Return the body; half of a surrogate pair, which a message may quote from the request, is escaped."""
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode(errors="backslashreplace")


async def _internal_error(request: Request, error: Exception) -> Response:
    _log.exception("a request to the schema registry failed", path=request.url.path)
    return _json({"error_code": 500, "message": "Internal Server Error"}, request, 500)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    return _json({"error_code": status, "message": f"HTTP {status} {error.detail}"}, request, status)
