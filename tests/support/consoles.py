"""A running console, and browsers without scripts that visit it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import httpx

from barnabas.base.clock import Clock
from barnabas.console.serving import ConsoleServer
from barnabas.console.settings import ConsoleSettings
from barnabas.telemetry.https import listening


class Visitor(httpx.Client):
    """A browser without scripts: cookies, redirects, forms."""

    def token(self, path: str = "/") -> str:
        """Return the session's CSRF token from the forms of a page."""
        return token_in(self.get(path).text)

    def submit(self, path: str, _from: str | None = None, **fields: Any) -> httpx.Response:
        """Post the form of the page `_from` (default: the page at `path`), and follow redirects."""
        return self.post(path, data={"csrf": self.token(_from or path), **fields})

    def log_in(self, user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> httpx.Response:
        return self.post("/login", data={"user": user, "password": password, "mechanism": mechanism})


def token_in(text: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', text)
    assert found is not None, text
    return unescape(found[1])


@contextmanager
def running_console(bootstrap: str, clock: Clock | None = None, **settings: Any) -> Iterator[ConsoleServer]:
    """Run a console on a free port of 127.0.0.1."""
    with ConsoleServer(
        ConsoleSettings(bootstrap, **settings), listening("127.0.0.1", 0), clock=clock
    ) as server:
        yield server


@contextmanager
def visiting(bootstrap: str, clock: Clock | None = None, **settings: Any) -> Iterator[Visitor]:
    """Run a console, and return a visitor of it."""
    with running_console(bootstrap, clock, **settings) as server, visitor(server) as person:
        yield person


def visitor(server: ConsoleServer) -> Visitor:
    return Visitor(base_url=server.url, follow_redirects=True, timeout=30)
