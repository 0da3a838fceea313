"""What a page is made of: its routes, and its place in the menu."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

if TYPE_CHECKING:
    from barnabas.console.view import View

Handler = Callable[["View"], Awaitable[Response]]


class Route(NamedTuple):
    """An address and what answers there.

    A POST needs the session's token, and a console that is not read-only unless it is `harmless`.
    `is_open` needs no session; `is_poll` does not count as use of it.
    """

    path: str
    handler: Handler
    method: str = "GET"
    harmless: bool = False
    is_open: bool = False
    is_poll: bool = False


class MenuEntry(NamedTuple):
    """A line of the menu. It is shown to who may do `needs` (name of an AclOperation) to the cluster."""

    group: str
    title: str
    path: str
    needs: str = ""
