"""Checks of every request, and headers of every response."""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.base.hosts import is_own_host, own_names
from barnabas.console.problems import PageError
from barnabas.web.origins import SAFE_METHODS, is_same_origin

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: with that, browsers send Origin: null with forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Size limit of application/x-www-form-urlencoded; larger forms are multipart/form-data.
ESCAPED_BYTES_MAX = 1 << 20


class Gate:
    """Passes requests for its own hosts to `app`, posts only from its own pages, bodies up to a size."""

    def __init__(
        self, app: ASGIApp, hosts: Iterable[str] = (), body_max_bytes: int = 8 * 1024 * 1024
    ) -> None:
        """:param hosts: Further names of this machine."""
        self._app = app
        self._hosts = own_names(hosts)
        self._body_max_bytes = body_max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        request_headers = Headers(scope=scope)
        refusal = self._refuse(scope["method"], request_headers)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        await self._app(scope, self._bounded(receive, self._most_bytes(request_headers)), send_with_headers)

    def _refuse(self, method: str, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not is_own_host(host, self._hosts):
            text = f"This console does not serve the host {host!r}. Add it with --host (or barnabas.console.hosts)."
            return PlainTextResponse(f"{text}\n", 421)
        if method not in SAFE_METHODS and not is_same_origin(headers):
            return PlainTextResponse("The request was not sent by a page of this console.\n", 403)
        length, most_bytes = headers.get("content-length", "0"), self._most_bytes(headers)
        if not length.isdigit() or int(length) > most_bytes:
            return PlainTextResponse(f"At most {most_bytes} bytes are accepted.\n", 413)
        return None

    def _most_bytes(self, headers: Headers) -> int:
        """An urlencoded form is decoded in one step, so its limit is lower."""
        is_escaped = "x-www-form-urlencoded" in headers.get("content-type", "").lower()
        return min(self._body_max_bytes, ESCAPED_BYTES_MAX) if is_escaped else self._body_max_bytes

    def _bounded(self, receive: Receive, most_bytes: int) -> Receive:
        """The same limit for bodies without a declared length."""
        received_bytes = 0

        async def receive_some() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > most_bytes:
                raise PageError(413, "Request too large", f"At most {most_bytes} bytes are accepted.")
            return message

        return receive_some
