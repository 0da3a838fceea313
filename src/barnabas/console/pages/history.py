"""The history of one resource: revisions, the difference between two, and rollback."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from starlette.responses import Response

from barnabas.client.admin.extensions.rollback import Rollback
from barnabas.console.audit_reader import HISTORY_LOOK_MAX, AuditQuery, read_back
from barnabas.console.page import Route
from barnabas.console.pages.audit import history_path, shown
from barnabas.console.problems import not_found, sentence, wrong_form
from barnabas.console.topic_view import find_topic
from barnabas.console.view import View
from barnabas.metadata.audit.event_history import compared, state_at
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome
from barnabas.wire.errors import KafkaError

_COUNT_MAX = 5_000
#: The cluster operation that a rollback of each resource type needs.
_NEEDED = {
    "user": "ALTER",
    "broker": "ALTER_CONFIGS",
    "client-metrics": "ALTER_CONFIGS",
    "group": "ALTER_CONFIGS",
}


class Revision(NamedTuple):
    """The changes that one transaction made to the resource."""

    revision: int
    time_ms: int
    principal: str
    api: str
    events: Sequence[AuditEvent]


def revisions_of(events: Sequence[AuditEvent]) -> list[Revision]:
    """The revisions with changes, the newest first; `events` are in order."""
    found: dict[int, list[AuditEvent]] = {}
    for event in events:
        if event.outcome is AuditOutcome.CHANGED:
            found.setdefault(event.revision, []).append(event)
    return [
        Revision(number, each[0].time, each[0].principal, each[0].api, each)
        for number, each in sorted(found.items(), reverse=True)
    ]


async def show(view: View) -> Response:
    """Show the revisions, and the difference between two of them, by default the last change."""
    return await _page(view)


async def _page(view: View, **more: Any) -> Response:
    resource = f"{view.path('kind')}/{view.path('name')}"
    found = await read_back(
        view.cluster, AuditQuery(resource=resource), count=_COUNT_MAX, look_max=HISTORY_LOOK_MAX
    )
    if not found.exists:
        return await view.page("history_none.html", resource=resource, has_audit=False)
    events = found.events[::-1]
    revisions = revisions_of(events)
    if not revisions and await _is_topic(view, resource):
        return await view.page("history_none.html", resource=resource, has_audit=True)
    if not revisions:
        raise not_found(f"The audit has no change of {resource}.")
    numbers = [each.revision for each in revisions]
    newer = _chosen(view, "to", numbers, numbers[0])
    older = _chosen(view, "from", numbers, numbers[min(numbers.index(newer) + 1, len(numbers) - 1)])
    older, newer = sorted((older, newer))
    before = {} if older == newer else state_at(events, resource, older)
    rows = [
        (key, shown(one), shown(other))
        for key, one, other in compared(before, state_at(events, resource, newer))
    ]
    return await view.page(
        "history.html",
        **{"preview": None, "error": "", **more},
        resource=resource,
        path=history_path(resource),
        revisions=revisions,
        choices=[(each.revision, f"revision {each.revision}") for each in revisions],
        older=older,
        newer=newer,
        differences=rows,
        complete=found.older is None,
        shown=shown,
        may_roll_back=await _may_roll_back(view, resource),
    )


def _chosen(view: View, name: str, numbers: Sequence[int], default: int) -> int:
    text = view.query.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 19 and int(text) in numbers else default


async def _is_topic(view: View, resource: str) -> bool:
    kind, _, name = resource.partition("/")
    try:
        return kind == "topic" and bool(await find_topic(view.admin, name))
    except KafkaError:
        return False


async def _may_roll_back(view: View, resource: str) -> bool:
    """Whether the principal may roll back; a deleted resource cannot be rolled back."""
    kind, _, name = resource.partition("/")
    if kind == "topic":
        try:
            operations = (await find_topic(view.admin, name)).operations
        except KafkaError:
            return False
        return view.offers("ALTER_CONFIGS", operations)
    return view.offers(_NEEDED.get(kind, "ALTER"), (await view.cluster_view()).operations)


async def roll_back(view: View) -> Response:
    """Preview a rollback; make it once confirmed, if it still changes what the preview showed."""
    resource, form = f"{view.path('kind')}/{view.path('name')}", await view.form()
    revision = form.whole("revision")
    if revision is None:
        raise wrong_form("Select the revision.")
    confirmed = form.flag("confirmed")
    try:
        outcome = await view.admin.roll_back(resource, revision, validate_only=True)
        is_agreed = confirmed and form.text("changes") == _digest(outcome)
        if is_agreed:
            await view.admin.roll_back(resource, revision)
    except KafkaError as error:
        return await _page(view, error=sentence(error), revision=revision)
    if is_agreed:
        view.access.topics.clear()
        return view.redirect_with_notice(
            history_path(resource), f"{resource} was rolled back to revision {revision}."
        )
    rows = [(key, shown(before), shown(after)) for key, before, after in outcome.keys]
    return await _page(
        view,
        preview=rows,
        notes=outcome.notes,
        revision=revision,
        digest=_digest(outcome),
        is_stale=confirmed,
    )


def _digest(outcome: Rollback) -> str:
    """Return what identifies the changes of a rollback."""
    return sha256(json.dumps(outcome.keys).encode()).hexdigest()


ROUTES = (
    Route("/history/{kind}/{name:path}", show),
    Route("/history/{kind}/{name:path}", roll_back, "POST"),
)
