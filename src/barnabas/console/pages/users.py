"""SCRAM users: list them, set passwords, remove credentials. Secrets are never shown."""

from typing import NamedTuple

from starlette.responses import Response

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.scram import ITERATIONS, Upsertion, UserScramCredentialDeletion
from barnabas.console.forms import Form
from barnabas.console.page import MenuEntry, Route
from barnabas.console.paging import ListQuery, paged
from barnabas.console.problems import sentence, wrong_form
from barnabas.console.view import View
from barnabas.console.wait_visible import wait_until_applied, wait_until_visible
from barnabas.declared.state import ClusterState, Credential
from barnabas.wire.errors import KafkaError
from barnabas.wire.scram import MECHANISMS_BY_TITLE, ScramMechanism

_ITERATIONS_MIN, _ITERATIONS_MAX = 4096, 16384
_PASSWORD_MIN = 8


class UserRow(NamedTuple):
    """A user and the iterations of each of its credentials."""

    name: str
    credentials: dict[ScramMechanism, int]


async def show(view: View) -> Response:
    """Show the users with credentials."""
    return await _page(view, {}, {})


async def _page(view: View, values: dict[str, str], errors: dict[str, str]) -> Response:
    found = await view.admin.describe_user_scram_credentials()
    rows = [UserRow(name, each) for name, each in found.items() if not isinstance(each, KafkaError)]
    query = ListQuery.of("/users", view.query, "user")
    context = {
        "part": paged(
            rows, query, {"user": lambda row: row.name}, lambda row, text: text in row.name.lower()
        ),
        "mechanisms": [(title, title) for title in reversed(MECHANISMS_BY_TITLE)],
        "iterations": ITERATIONS,
        "may_alter": view.offers("ALTER", (await view.cluster_view()).operations),
    }
    if view.is_partial and not errors:
        return await view.piece("users_list.html", **context)
    status = 400 if errors else 200
    return await view.page("users.html", status=status, **context, values=values, errors=errors)


async def set_password(view: View) -> Response:
    """Set a user's password for one mechanism; only its salted form leaves this process."""
    form = await view.form()
    upsertion = upsertion_of(form)
    if not form.errors:
        try:
            raise_errors((await view.admin.alter_user_scram_credentials([upsertion])).values())
        except KafkaError as error:
            form.refuse("user", sentence(error))
        else:
            title = upsertion.mechanism.title
            credentials = {upsertion.mechanism: Credential(upsertion.iterations)}
            await wait_until_applied(view.admin, ClusterState(users={upsertion.user: credentials}))
            return view.redirect_with_notice(
                "/users", f"{upsertion.user} can log in by {title} with the new password."
            )
    values = {name: form.text(name) for name in ("user", "mechanism", "iterations")}
    return await _page(view, values, form.errors)


def upsertion_of(form: Form) -> Upsertion:
    """The credential that a form describes; mistakes are among its errors."""
    mechanism = MECHANISMS_BY_TITLE[form.one_of("mechanism", tuple(MECHANISMS_BY_TITLE))]
    password = form.raw("password")
    if len(password) < _PASSWORD_MIN:
        form.refuse("password", f"A password has at least {_PASSWORD_MIN} characters.")
    elif password != form.raw("again"):
        form.refuse("again", "The two passwords differ.")
    iterations = form.whole(
        "iterations", minimum=_ITERATIONS_MIN, maximum=_ITERATIONS_MAX, default=ITERATIONS
    )
    return Upsertion(form.needed("user"), mechanism, password, iterations or ITERATIONS)


async def remove(view: View) -> Response:
    form = await view.form()
    user, mechanism = form.text("user"), MECHANISMS_BY_TITLE.get(form.text("mechanism"))
    if not user or mechanism is None:
        raise wrong_form("This is not one of the listed credentials.")
    raise_errors(
        (
            await view.admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, mechanism)])
        ).values()
    )
    asked = ClusterState(users={user: {mechanism: Credential()}})
    await wait_until_visible(view.admin, asked, lambda live: mechanism not in live.users.get(user, {}))
    return view.redirect_with_notice("/users", f"{user} can no longer log in by {mechanism.title}.")


MENU = MenuEntry("Security", "Users", "/users", "DESCRIBE")
ROUTES = (
    Route("/users", show),
    Route("/users", set_password, "POST"),
    Route("/users/remove", remove, "POST"),
)
