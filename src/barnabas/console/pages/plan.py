"""What a declared state would change, key by key, before anybody applies it."""

import asyncio
from pathlib import Path
from typing import Any

from starlette.responses import Response

from barnabas.console.page import MenuEntry, Route
from barnabas.console.view import View
from barnabas.declared.differences import Action, Change, Level, shown
from barnabas.declared.plan import Plan, Wish, make_plan
from barnabas.declared.reading import DeclarationError, read_state_text
from barnabas.declared.secrets import SecretMissing, Secrets
from barnabas.declared.state import Credential, Secret

TEXT_BYTES_MAX = 512 * 1024
_BADGES = {
    Level.WARNING: "warn",
    Level.DESTRUCTIVE: "bad",
    Level.LOCKOUT: "bad",
    Level.IMPOSSIBLE: "bad",
}


class UnseenSecrets(Secrets):
    """Secrets that are looked up by nobody: what is sent to the console must not read its machine's files."""

    def __init__(self) -> None:
        super().__init__({}, Path())

    def value(self, secret: Secret) -> str:
        """None.

        :raises SecretMissing: Always.
        """
        message = (
            f"the console looks up no secrets, so that this one ({secret.origin} {secret.name}) is not judged"
        )
        raise SecretMissing(message)


async def ask(view: View) -> Response:
    """The form."""
    return await view.page("plan.html", text="", errors={}, plan=None, rows=())


async def preview(view: View) -> Response:
    """The plan of what was pasted or uploaded. Nothing is changed."""
    form = await view.form("text")
    data = form.files.get("file") or form.raw("text").encode()
    text = data[:TEXT_BYTES_MAX].decode(errors="replace")
    plan = None
    if len(data) > TEXT_BYTES_MAX:
        form.refuse("text", f"This has {len(data)} bytes: the console takes at most {TEXT_BYTES_MAX}.")
    elif not text.strip():
        form.refuse("text", "Paste a declared state, or choose a file.")
    else:
        try:
            state = await asyncio.to_thread(read_state_text, text)
        except DeclarationError as error:
            form.refuse("text", f"The state {error}" if not str(error).startswith("line") else f"In {error}")
        else:
            wish = Wish(state, UnseenSecrets(), principal=view.access.principal)
            plan = await make_plan(view.admin, wish, view.access.clock)
    return await view.page(
        "plan.html",
        status=400 if form.errors else 200,
        text=text,
        errors=form.errors,
        plan=plan,
        rows=rows_of(plan) if plan is not None else (),
    )


def rows_of(plan: Plan) -> list[dict[str, Any]]:
    """The plan's changes as the table shows them."""
    return [
        {
            "resource": change.resource,
            "key": change.key,
            "action": change.action.value,
            "kind": "bad" if change.action is Action.DELETE else "",
            "before": told(change.before),
            "after": told(change.after),
            "remarks": _remarks(change),
        }
        for change in plan.changes
    ]


def told(value: Any) -> str | None:
    """A value for people, without its secrets; None for nothing."""
    if isinstance(value, Credential):
        return f"{value.iterations} iterations" if value.iterations else "a password"
    if value is True:
        return "set"
    text = shown(value)
    return None if text is None else f"{text:.15g}" if isinstance(text, float) else str(text)


def _remarks(change: Change) -> list[tuple[str, str, str]]:
    """(badge, weight, text) of what is to be known of a change."""
    return [(_BADGES.get(each.level, ""), each.level.name.lower(), each.text) for each in change.remarks]


MENU = MenuEntry("History", "Plan preview", "/plan")
ROUTES = (Route("/plan", ask), Route("/plan", preview, "POST", harmless=True))
