"""One request as a page sees it: who asks, of which cluster, and the ways to answer."""

import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.console.access import Access, ClusterView
from barnabas.console.forms import Form, encodable, too_long
from barnabas.console.problems import not_found, wrong_form
from barnabas.console.rendering import render
from barnabas.console.sessions import ConsoleSession

if TYPE_CHECKING:
    from barnabas.console.app import Console

_SEE_OTHER = 303
_FIELDS_MAX = 2_000
_FILES_MAX = 4
THEMES = ("auto", "light", "dark")
THEME_COOKIE = "barnabas-theme"


class View:
    """A request, its session and its cluster."""

    def __init__(self, console: "Console", request: Request, session: ConsoleSession) -> None:
        self.console = console
        self.request = request
        self.session = session
        self._cluster_view: ClusterView | None = None

    @property
    def access(self) -> Access:
        """The cluster as this session's principal sees it."""
        return self.session.access

    @property
    def admin(self) -> Admin:
        """What asks and changes the cluster."""
        return self.session.access.admin

    @property
    def cluster(self) -> ClusterClient:
        """The connections to it."""
        return self.session.access.cluster

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the address; of several with one name, the last."""
        return dict(self.request.query_params)

    @property
    def is_partial(self) -> bool:
        """Whether htmx asks for a piece of a page rather than for all of it."""
        headers = self.request.headers
        return "hx-request" in headers and "hx-history-restore-request" not in headers

    def path(self, name: str) -> str:
        """A part of the address, such as a topic's name.

        :raises Problem: When it is longer than any name, which brokers answer by hanging up.
        """
        value = str(self.request.path_params[name])
        if too_long(value):
            raise not_found()
        return value

    async def form(self, *unbounded: str) -> Form:
        """What was sent. Fields are strings of Kafka's, but for those named as `unbounded`.

        :raises Problem: When one is longer than any string.
        """
        values: dict[str, list[str]] = {}
        files: dict[str, bytes] = {}
        data = await form_data(self.request)
        for name, value in data.multi_items():
            if isinstance(value, UploadFile):
                files[name] = await value.read()
            else:
                values.setdefault(name, []).append(_text(value))
        await data.close()
        for name, texts in values.items():
            why = None if name in unbounded else next(filter(None, map(too_long, texts)), None)
            if why:
                raise wrong_form(f"Field '{name[:60]}': {why}")
        return Form(values, files)

    async def cluster_view(self) -> ClusterView:
        """The cluster, and what may be done to it; asked for once."""
        if self._cluster_view is None:
            self._cluster_view = await self.access.view()
        return self._cluster_view

    async def may(self, operation: str) -> bool:
        """Whether the principal may do that to the cluster (the name of an AclOperation)."""
        return operation in (await self.cluster_view()).operations

    def offers(self, operation: str, operations: frozenset[str]) -> bool:
        """Whether a change is to be offered: it is among what the principal may do, and the console is for changes."""
        return not self.console.settings.read_only and operation in operations

    async def page(self, template: str, *, status: int = 200, **context: Any) -> Response:
        """A whole page: a template that extends `layout.html`."""
        shell = await self.console.shell(self)
        return HTMLResponse(render(template, {**shell, **context}), status)

    async def piece(self, template: str, **context: Any) -> Response:
        """A piece of a page, for htmx to put into it."""
        shared = {
            "segment": segment,
            "view": self,
            "read_only": self.console.settings.read_only,
            "csrf": self.session.csrf,
        }
        return HTMLResponse(render(template, {**shared, **context}), headers={"Vary": "HX-Request"})

    def redirect_with_notice(self, path: str, notice: str = "", kind: str = "good") -> Response:
        """What answers a form that has been dealt with: go there, and be told."""
        if notice:
            self.session.note(kind, notice)
        return RedirectResponse(path, _SEE_OTHER)


async def form_data(request: Request) -> FormData:
    """What was sent; the gate has bounded how much that is.

    :raises Problem: When it is no form.
    """
    try:
        return await request.form(max_fields=_FIELDS_MAX, max_files=_FILES_MAX, max_part_size=sys.maxsize)
    except HTTPException as error:
        raise wrong_form(error.detail) from None


def _text(value: str) -> str:
    try:
        return encodable(value)
    except ValueError:  # of a charset that the form chose
        message = "What was sent is no text."
        raise wrong_form(message) from None


def segment(name: str) -> str:
    """A name as a part of an address; of a route it is `{name:path}` where a name may have slashes."""
    return quote(name, safe="")
