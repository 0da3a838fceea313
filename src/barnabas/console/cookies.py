"""The session's cookie."""

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.sessions import ConsoleSession

_COOKIE = "barnabas-session"


def cookie_name(request: Request) -> str:
    """The name of the session's cookie; it includes the port, because browsers share cookies among ports."""
    port = request.url.port
    return f"{_COOKIE}-{port}" if port else _COOKIE


def set_session_cookie(request: Request, response: Response, session: ConsoleSession) -> None:
    """Set the session's cookie, which lasts until the browser is closed."""
    if not session.key or request.cookies.get(cookie_name(request)) == session.key:
        return
    if any(
        cookie_name(request).encode() in value
        for name, value in response.raw_headers
        if name == b"set-cookie"
    ):
        return
    response.set_cookie(
        cookie_name(request),
        session.key,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def delete_session_cookie(request: Request, response: Response) -> None:
    response.delete_cookie(cookie_name(request), path="/", httponly=True, samesite="strict")
