"""Light or dark theme, kept in a cookie because it belongs to the browser."""

from starlette.responses import Response

from barnabas.console.page import Route
from barnabas.console.pages.login import local_path
from barnabas.console.view import THEME_COOKIE, THEMES, View

_YEAR_S = 365 * 24 * 3600


async def choose(view: View) -> Response:
    """Set the theme and return to the page."""
    form = await view.form()
    response = view.redirect_with_notice(local_path(form.text("next")))
    response.set_cookie(
        THEME_COOKIE, form.one_of("theme", THEMES), max_age=_YEAR_S, httponly=True, samesite="strict"
    )
    return response


ROUTES = (Route("/theme", choose, "POST", harmless=True, is_open=True),)
