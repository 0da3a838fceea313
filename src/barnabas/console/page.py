"""The parts of a page: its routes and its menu entry."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

if TYPE_CHECKING:
    from barnabas.console.view import View

Handler = Callable[["View"], Awaitable[Response]]


class Route(NamedTuple):
    """An address and its handler.

    A POST needs the session's token, and a console that is not read-only unless the route is `harmless`.
    `is_open` needs no session; `is_poll` does not extend the session.
    """

    path: str
    handler: Handler
    method: str = "GET"
    harmless: bool = False
    is_open: bool = False
    is_poll: bool = False


class MenuEntry(NamedTuple):
    """A menu entry, shown to principals that may do `needs` (name of an AclOperation) on the cluster."""

    group: str
    title: str
    path: str
    needs: str = ""
