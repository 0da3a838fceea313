"""The console as an ASGI application: routes, sessions and error pages."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount
from starlette.routing import Route as StarletteRoute
from starlette.staticfiles import StaticFiles

from barnabas.base.clock import Clock, SystemClock
from barnabas.client.auth.sasl import SaslLogin
from barnabas.console.access import Access, offered_mechanisms
from barnabas.console.cached_value import Snapshot
from barnabas.console.cookies import cookie_name, set_session_cookie
from barnabas.console.login_throttle import LoginAttempts
from barnabas.console.page import Route
from barnabas.console.plan_processes import PlanProcesses
from barnabas.console.problems import PageError, not_found, problem_of
from barnabas.console.rendering import render
from barnabas.console.request_guard import Gate
from barnabas.console.routes import MENU, ROUTES
from barnabas.console.sessions import ConsoleSession, Sessions
from barnabas.console.settings import ConsoleSettings
from barnabas.console.view import THEME_COOKIE, THEMES, View, form_data, segment
from barnabas.registry.client import RegistryClient
from barnabas.registry.codecs.records import RecordDecoder
from barnabas.telemetry.logs import get_logger

_log = get_logger("barnabas.console")

STATIC = Path(__file__).parent / "static"
_CSRF_FIELD, _CSRF_HEADER = "csrf", "x-csrf-token"
_SWEEP_S = 30.0
#: How long an error page waits for the data of its frame.
_PROBLEM_S = 5.0
#: Size limit of a body without a session; a login form is smaller.
_STRANGERS_BODY_MAX_BYTES = 64 * 1024
_MECHANISMS_FRESH_MS, _MECHANISMS_STALE_MS = 60_000, 600_000
_SEE_OTHER = 303
#: How long a page waits for a schema.
_REGISTRY_S = 3.0


class Console:
    """What the pages of one console share: sessions, access to the cluster, the clock."""

    def __init__(self, settings: ConsoleSettings, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        self.attempts = LoginAttempts(clock)
        self.sessions = Sessions(
            clock,
            lambda: secrets.token_urlsafe(32),
            idle_ms=settings.idle_ms,
            lifetime_ms=settings.lifetime_ms,
            sessions_max=settings.sessions_max,
        )
        #: for pages that need no session and no cluster
        self._nobody = ConsoleSession("", "", Access(settings, clock, None), 0, 0, own_access=False)
        #: decodes records with the schema registry, if there is one
        self.decoder = _decoder(settings, clock)
        #: one page at a time decodes and searches records, so that other threads get their share
        self.search_turns = asyncio.Semaphore(1)
        self._guests: Access | None = None
        self.plans = PlanProcesses()
        self._closing: set[asyncio.Task[None]] = set()
        self._mechanisms = Snapshot(
            lambda: offered_mechanisms(settings),
            clock,
            fresh_ms=_MECHANISMS_FRESH_MS,
            stale_ms=_MECHANISMS_STALE_MS,
        )

    async def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms for logging in; empty if no login is required.

        :raises BrokerConnectionError: When no broker responds.
        """
        return () if self.settings.login is not None else await self._mechanisms.get()

    async def log_in(self, login: SaslLogin) -> ConsoleSession:
        """Open a session with connections of its own.

        :raises KafkaError: When the cluster refuses the login.
        :raises BrokerConnectionError: When no broker responds.
        """
        access = Access(self.settings, self.clock, login)
        try:
            await access.cluster.connect()
        except BaseException:
            await access.close()
            raise
        return self.sessions.open(access, own_access=True)

    def admit_guest(self) -> ConsoleSession:
        """Open a session without a login; all of these share connections, as they are one principal."""
        if self._guests is None:
            self._guests = Access(self.settings, self.clock, self.settings.login)
        return self.sessions.open(self._guests, own_access=False)

    def end(self, session: ConsoleSession) -> None:
        """Log out. Connections are closed in the background, so that no page waits for it."""
        self.sessions.close(session)
        if session.own_access:
            task = asyncio.create_task(_closed(session.access))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def sweep(self) -> None:
        """End expired sessions."""
        for session in self.sessions.take_expired():
            self.end(session)

    async def close(self) -> None:
        """End all sessions and connections."""
        for session in self.sessions.take_all():
            self.end(session)
        if self._guests is not None:
            await _closed(self._guests)
        self._mechanisms.close()
        await asyncio.gather(*self._closing)

    def statistics(self) -> dict[str, int]:
        """Counts of sessions and of logins that failed."""
        logins = {f"logins_{name}": value for name, value in self.attempts.statistics().items()}
        return {**{f"sessions_{name}": value for name, value in self.sessions.statistics().items()}, **logins}

    # Pages

    async def serve(self, route: Route, request: Request) -> Response:
        """Answer a request; every error becomes a page."""
        session: ConsoleSession | None = None
        try:
            async with asyncio.timeout(self.settings.page_timeout_ms / 1000):
                self.sweep()
                session = self.sessions.find(request.cookies.get(cookie_name(request)), use=not route.is_poll)
                if session is None and not route.is_open:
                    if await self.mechanisms():
                        return _to_login(request)
                    session = self.admit_guest()
                response = await self._answer(route, request, session)
        except Exception as error:
            response = await self.explain(error, request, session)
        finally:
            if session is not None and not self.sessions.holds(session):
                self.end(session)  # again: the page may have opened connections after the session's end
        if session is not None:
            set_session_cookie(request, response, session)
        return response

    async def _answer(self, route: Route, request: Request, session: ConsoleSession | None) -> Response:
        if session is None:
            _check_size(request)
            session = self._nobody
        elif request.method == "POST":
            await _check_token(request, session)
        if self.settings.read_only and request.method == "POST" and not route.harmless:
            text = "This console is read-only: it makes no changes."
            raise PageError(403, "Read-only", text)
        return await route.handler(View(self, request, session))

    async def explain(self, error: Exception, request: Request, session: ConsoleSession | None) -> Response:
        """The error page, or a fragment of it for htmx."""
        problem = problem_of(error)
        if problem is None:
            _log.exception("page failed", path=request.url.path)
            hint = "The console's log has the details; please report it."
            problem = PageError(500, "Internal error", "The console failed with an unexpected error.", hint)
        context = {"problem": problem, **bare_shell(self, request)}
        view = View(self, request, session or self._nobody)
        if view.is_partial:
            return HTMLResponse(render("problem_piece.html", context), problem.status)
        if session is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_PROBLEM_S):
                    return await view.page("problem.html", status=problem.status, problem=problem)
        return HTMLResponse(render("problem.html", context), problem.status)

    async def shell(self, view: View) -> dict[str, Any]:
        """The values of `layout.html` around every page."""
        shell = bare_shell(self, view.request)
        if not view.session.key:
            return {**shell, "view": view}
        cluster: Any = None
        with contextlib.suppress(Exception):  # the error page of a lost cluster has its frame, too
            cluster = await view.cluster_view()
        may = cluster.operations if cluster is not None else frozenset()
        return {
            **shell,
            "view": view,
            "csrf": view.session.csrf,
            "session": view.session,
            "principal": view.session.access.principal,
            "cluster": cluster,
            "menu": [entry for entry in MENU if cluster is None or not entry.needs or entry.needs in may],
            "notices": view.session.take_notices(),
        }


def bare_shell(console: Console, request: Request) -> dict[str, Any]:
    """The frame of a page without a session."""
    theme = request.cookies.get(THEME_COOKIE, "auto")
    return {
        "theme": theme if theme in THEMES else "auto",
        "path": request.url.path,
        "address": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "read_only": console.settings.read_only,
        "lent_login": console.settings.login is not None,
        "segment": segment,
        "csrf": "",
        "session": None,
        "principal": "",
        "cluster": None,
        "menu": (),
        "notices": (),
    }


def create_app(
    settings: ConsoleSettings,
    clock: Clock | None = None,
) -> Starlette:
    console = Console(settings, clock or SystemClock())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(_sweep_always(console))
        yield
        sweeping.cancel()
        await console.close()

    app = Starlette(
        routes=[
            *(_starlette_route(console, route) for route in ROUTES),
            Mount("/static", _Static(directory=STATIC)),
        ],
        middleware=[Middleware(Gate, hosts=settings.hosts, body_max_bytes=settings.body_max_bytes)],
        lifespan=lifespan,
        exception_handlers={
            404: _missing(console),
            405: _missing(console),
            PageError: _error_handler(console),
        },
    )
    app.state.console = console
    return app


async def _sweep_always(console: Console) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        console.sweep()


def _decoder(settings: ConsoleSettings, clock: Clock) -> RecordDecoder | None:
    if not settings.registry:
        return None
    client = RegistryClient(settings.registry, timeout_s=_REGISTRY_S)
    return RecordDecoder(client, clock.monotonic_ms, lambda problem: _log.info("not decoded", why=problem))


async def _closed(access: Access) -> None:
    try:
        await access.close()
    except Exception:
        _log.exception("connections not closed", principal=access.principal)


def _starlette_route(console: Console, route: Route) -> StarletteRoute:
    async def endpoint(request: Request) -> Response:
        return await console.serve(route, request)

    methods = ["GET", "HEAD"] if route.method == "GET" else [route.method]
    return StarletteRoute(route.path, endpoint, methods=methods, name=f"{route.method} {route.path}")


def _missing(console: Console) -> Any:
    async def response(request: Request, error: Exception) -> Response:
        async def fail(view: View) -> Response:
            raise not_found()

        return await console.serve(Route(request.url.path, fail, harmless=True), request)

    return response


def _error_handler(console: Console) -> Any:
    async def response(request: Request, error: Exception) -> Response:
        return await console.explain(error, request, None)

    return response


class _Static(StaticFiles):
    """Static files, which change only with the version."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "public, max-age=3600"
        return response


def _check_size(request: Request) -> None:
    """Limit the size of bodies without a session; the length must be declared."""
    length = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers or int(length) > _STRANGERS_BODY_MAX_BYTES:
        text = f"At most {_STRANGERS_BODY_MAX_BYTES} bytes are accepted before a login."
        raise PageError(413, "Request too large", text)


async def _check_token(request: Request, session: ConsoleSession) -> None:
    """Check that the request carries the session's token, in a header or in the form."""
    token = request.headers.get(_CSRF_HEADER)
    if token is None:
        value = (await form_data(request)).get(_CSRF_FIELD, "")
        token = value if isinstance(value, str) else ""
    if not secrets.compare_digest(token.encode(), session.csrf.encode()):
        hint = "Go back, reload the page, and send the form again."
        raise PageError(403, "The form has expired", "It does not belong to your current session.", hint)


def _to_login(request: Request) -> Response:
    address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    whither = f"/login?next={segment(address)}" if request.method == "GET" and address != "/" else "/login"
    if "hx-request" in request.headers:
        return Response(status_code=204, headers={"HX-Redirect": "/login"})
    return RedirectResponse(whither, _SEE_OTHER)
