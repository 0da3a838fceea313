"""Reads small documents from URLs, for settings and logins. Blocks."""

import http.client
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 10.0
BYTES_MAX = 1 << 20


class _SameServer(urllib.request.HTTPRedirectHandler):
    """Follows redirects within one server: secrets must not be sent to another, nor without encryption."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        if (before.scheme, before.netloc) != (after.scheme, after.netloc):
            raise urllib.error.HTTPError(newurl, code, "is redirected to another server", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def read_url(request: urllib.request.Request | str) -> bytes:
    """Return the content of an http, https or file URL.

    :raises urllib.error.HTTPError: The answer of a server that refuses, or redirects to another one.
    :raises OSError: If it cannot be read, or has more than `BYTES_MAX` bytes.
    """
    try:
        with urllib.request.build_opener(_SameServer).open(request, timeout=TIMEOUT_S) as response:
            content: bytes = response.read(BYTES_MAX + 1)
    except http.client.HTTPException as error:
        raise OSError(f"malformed answer: {error!r}") from error
    if len(content) > BYTES_MAX:
        raise OSError(f"more than {BYTES_MAX} bytes")
    return content
