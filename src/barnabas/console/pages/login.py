"""Log in as a SASL user of the cluster, and out."""

from starlette.responses import RedirectResponse, Response

from barnabas.client.auth.sasl import SaslLogin
from barnabas.console.cookies import delete_session_cookie, set_session_cookie
from barnabas.console.page import Route
from barnabas.console.problems import sentence
from barnabas.console.view import View
from barnabas.wire.errors import KafkaError

_SEE_OTHER = 303
#: Attempts are remembered for a while, so their names are limited.
_USER_MAX = 1_000


async def ask(view: View) -> Response:
    """Show the form; redirect if no login is required."""
    mechanisms = await view.console.mechanisms()
    if not mechanisms or view.session.key:
        return view.redirect_with_notice(local_path(view.query.get("next", "")))
    return await _form(view, mechanisms, view.query.get("next", ""))


async def log_in(view: View) -> Response:
    """Try the name and password on the cluster."""
    console, form = view.console, await view.form()
    mechanisms = await console.mechanisms()
    if not mechanisms:
        return view.redirect_with_notice("/")
    user, password = form.needed("user"), form.raw("password")
    mechanism = form.one_of("mechanism", mechanisms)
    client = view.request.client.host if view.request.client else ""
    if "\0" in user + password:
        form.refuse("user", "Name and password must not contain null characters.")
    wait_s = console.attempts.wait_s(user, client)
    if len(user) > _USER_MAX:
        form.refuse("user", f"A name has at most {_USER_MAX} characters.")
    if wait_s:
        form.refuse("user", f"Too many failed attempts: try again in {wait_s} s.")
    if not form.errors:
        console.attempts.record_attempt(user, client)
        try:
            session = await console.log_in(SaslLogin(mechanism, user, password))
        except KafkaError as error:
            form.refuse("user", sentence(error))
        except ConnectionError:  # no broker has checked the password
            console.attempts.succeeded(user, client)
            raise
        else:
            console.attempts.succeeded(user, client)
            console.end(view.session)
            response = RedirectResponse(local_path(form.text("next")), _SEE_OTHER)
            set_session_cookie(view.request, response, session)
            return response
    return await _form(view, mechanisms, form.text("next"), user=user, errors=form.errors)


async def log_out(view: View) -> Response:
    """End the session."""
    view.console.end(view.session)
    response = RedirectResponse("/login", _SEE_OTHER)
    delete_session_cookie(view.request, response)
    return response


def local_path(path: str) -> str:
    """The path to continue at, if it is one of this console; else /."""
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable() else "/"


async def _form(
    view: View,
    mechanisms: tuple[str, ...],
    whither: str,
    *,
    user: str = "",
    errors: dict[str, str] | None = None,
) -> Response:
    status = 401 if errors else 200
    return await view.page(
        "login.html",
        status=status,
        mechanisms=mechanisms,
        whither=local_path(whither),
        user=user,
        errors=errors or {},
    )


ROUTES = (
    Route("/login", ask, is_open=True),
    Route("/login", log_in, "POST", harmless=True, is_open=True),
    Route("/logout", log_out, "POST", harmless=True, is_open=True),
)
