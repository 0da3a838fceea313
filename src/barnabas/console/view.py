"""One request as a page sees it: session, cluster, and ways to respond."""

import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
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
        return self.session.access.admin

    @property
    def cluster(self) -> ClusterClient:
        """The connections to the cluster."""
        return self.session.access.cluster

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the address; of repeated ones, the last."""
        return dict(self.request.query_params)

    @property
    def is_partial(self) -> bool:
        """Whether htmx asks for a fragment of the page."""
        headers = self.request.headers
        return "hx-request" in headers and "hx-history-restore-request" not in headers

    def path(self, name: str) -> str:
        """A part of the address, such as a topic's name.

        :raises PageError: When it is longer than any name, on which brokers close the connection.
        """
        value = str(self.request.path_params[name])
        if too_long(value):
            raise not_found()
        return value

    async def form(self, *unbounded: str) -> Form:
        """The submitted form. Fields have the length limit of Kafka's strings, except for those in `unbounded`.

        :raises PageError: When one is longer.
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
        """The cluster with the principal's permissions; fetched once."""
        if self._cluster_view is None:
            self._cluster_view = await self.access.view()
        return self._cluster_view

    async def may(self, operation: str) -> bool:
        """Whether the principal may do the operation (name of an AclOperation) on the cluster."""
        return operation in (await self.cluster_view()).operations

    def offers(self, operation: str, operations: frozenset[str]) -> bool:
        """Whether to offer a change: the operation is permitted, and the console is not read-only."""
        return not self.console.settings.read_only and operation in operations

    async def page(self, template: str, *, status: int = 200, **context: Any) -> Response:
        """A whole page: a template that extends `layout.html`."""
        shell = await self.console.shell(self)
        return HTMLResponse(render(template, {**shell, **context}), status)

    async def piece(self, template: str, **context: Any) -> Response:
        """A fragment of a page for htmx."""
        shared = {
            "segment": segment,
            "view": self,
            "read_only": self.console.settings.read_only,
            "csrf": self.session.csrf,
        }
        return HTMLResponse(render(template, {**shared, **context}), headers={"Vary": "HX-Request"})

    def redirect_with_notice(self, path: str, notice: str = "", kind: str = "good") -> Response:
        """Redirect after a form, with a message on the next page."""
        if notice:
            self.session.note(kind, notice)
        return RedirectResponse(path, _SEE_OTHER)


async def form_data(request: Request) -> FormData:
    """The submitted form, whose size was limited before.

    :raises PageError: When it is malformed.
    """
    try:
        return await request.form(max_fields=_FIELDS_MAX, max_files=_FILES_MAX, max_part_size=sys.maxsize)
    except HTTPException as error:
        raise wrong_form(error.detail) from None
    except ClientDisconnect:
        message = "The browser has gone before its form was complete."
        raise wrong_form(message) from None


def _text(value: str) -> str:
    try:
        return encodable(value)
    except ValueError:  # an unknown charset in the form
        message = "The form is not valid text."
        raise wrong_form(message) from None


def segment(name: str) -> str:
    """A name as a part of an address; in a route it is `{name:path}` if names may contain slashes."""
    return quote(name, safe="")
