"""The audit: changes and refused requests, the newest first, refreshed while the page is open."""

import json
from typing import Any

from starlette.responses import Response

from barnabas.console.audit_reader import AuditPage, AuditQuery, outcomes, read_back
from barnabas.console.page import MenuEntry, Route
from barnabas.console.times import EXAMPLES, time_ms
from barnabas.console.view import View, segment
from barnabas.wire.acls import principal_of

_FIELDS = ("resource", "principal", "outcome", "since", "until")


async def show(view: View) -> Response:
    """Show the newest matching events, or those before an offset."""
    context = await _context(view)
    if view.is_partial:
        return await view.piece("audit_list.html", **context)
    return await view.page("audit.html", status=400 if context["errors"] else 200, **context)


async def _context(view: View) -> dict[str, Any]:
    values = {name: view.query.get(name, "").strip()[:300] for name in _FIELDS}
    errors: dict[str, str] = {}
    query = audit_query(values, view.console.clock.wall_ms(), errors)
    before = view.query.get("before", "")
    at = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    if errors:
        found = AuditPage([], None)
    elif at is None:
        found = await view.access.audit.latest(tuple(values.values()), query)
    else:
        found = await read_back(view.cluster, query, before=at)
    return {
        "found": found,
        "values": values,
        "errors": errors,
        "kept": {name: value for name, value in values.items() if value},
        "follows": at is None and query.until_ms is None and not errors,
        "outcome_choices": [("", "anything"), *((each, each) for each in outcomes())],
        "shown": shown,
        "history_path": history_path,
        "examples": EXAMPLES,
    }


def audit_query(values: dict[str, str], now_ms: int, errors: dict[str, str]) -> AuditQuery:
    """The query of the form; mistakes are in `errors`."""
    times: dict[str, int | None] = {}
    for name in ("since", "until"):
        try:
            times[name] = time_ms(values[name], now_ms) if values[name] else None
        except ValueError as error:
            times[name] = None
            errors[name] = str(error)
    principal = values["principal"] and principal_of(values["principal"])
    outcome = values["outcome"] if values["outcome"] in outcomes() else ""
    return AuditQuery(values["resource"], principal, outcome, times["since"], times["until"])


def shown(value: Any) -> str | None:
    """A value for people: text as it is, empty for None."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def history_path(resource: str) -> str:
    """The address of a resource's history page."""
    kind, _, name = resource.partition("/")
    return f"/history/{segment(kind)}/{segment(name)}"


MENU = MenuEntry("History", "Audit", "/audit", "DESCRIBE")
ROUTES = (
    Route("/audit", show),
    Route("/audit/latest", show, is_poll=True),
)
