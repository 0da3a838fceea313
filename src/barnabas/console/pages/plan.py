"""Preview what a declared state would change, key by key."""

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.console.forms import Form
from barnabas.console.page import MenuEntry, Route
from barnabas.console.plan_processes import CPU_S_MAX
from barnabas.console.view import View

if TYPE_CHECKING:
    from barnabas.console.plan_worker import PlanOrder

TEXT_BYTES_MAX = 512 * 1024


async def ask(view: View) -> Response:
    """Show the form."""
    return await view.page("plan.html", text="", errors={}, changes="")


async def preview(view: View) -> Response:
    """Plan the pasted or uploaded state. Nothing is changed."""
    form = await view.form("text")
    data = form.files.get("file") or form.raw("text").encode()
    text = data[:TEXT_BYTES_MAX].decode(errors="replace")
    _check(form, data, text)
    outcome = {} if form.errors else await _plan(view, text)
    if "refusal" in outcome:
        form.refuse("text", outcome["refusal"])
    return await view.page(
        "plan.html",
        status=400 if form.errors else 200,
        text=text,
        errors=form.errors,
        changes=outcome.get("html", ""),
    )


def _check(form: Form, data: bytes, text: str) -> None:
    if len(data) > TEXT_BYTES_MAX:
        form.refuse(
            "text", f"The declared state has {len(data)} bytes; the console accepts at most {TEXT_BYTES_MAX}."
        )
    elif not text.strip():
        form.refuse("text", "Paste a declared state, or choose a file.")


async def _plan(view: View, text: str) -> dict[str, Any]:
    """Make the plan while the browser waits."""
    settings, login = view.console.settings, view.access.login
    order: PlanOrder = {
        "text": text,
        "bootstrap": settings.bootstrap,
        "principal": view.access.principal,
        "login": None if login is None else login.to_plain(),
        "tls": None if settings.tls is None else settings.tls.to_plain(),
        "connect_timeout_ms": settings.connect_timeout_ms,
        "request_timeout_ms": settings.request_timeout_ms,
        "retry_timeout_ms": settings.retry_timeout_ms,
        "timeout_ms": settings.page_timeout_ms,
        "cpu_s_max": CPU_S_MAX,
    }
    planning = asyncio.ensure_future(view.console.plans.make(order))
    leaving = asyncio.ensure_future(_disconnected(view.request))
    try:
        await asyncio.wait((planning, leaving), return_when=asyncio.FIRST_COMPLETED)
        return planning.result() if planning.done() else {}
    finally:
        leaving.cancel()
        planning.cancel()
        await asyncio.gather(planning, leaving, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


MENU = MenuEntry("History", "Plan preview", "/plan")
ROUTES = (Route("/plan", ask), Route("/plan", preview, "POST", harmless=True))
