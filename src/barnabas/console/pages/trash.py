"""Deleted topics that can be restored (a feature of Barnabas): undelete and purge them."""

from typing import NamedTuple

from starlette.responses import Response

from barnabas.base.ids import uuid_to_text
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.extensions.trash import Trashed, TrashedTopicDescription
from barnabas.console.formatting import plural
from barnabas.console.forms import Form
from barnabas.console.page import MenuEntry, Route
from barnabas.console.paging import ListQuery, paged
from barnabas.console.problems import not_found, sentence
from barnabas.console.trash_rule import trash_rule
from barnabas.console.view import View, segment
from barnabas.wire.errors import ErrorCode, KafkaError

_COLUMNS = {
    "name": lambda row: (row.topic.name, -row.topic.deleted_ms),
    "deleted": lambda row: row.topic.deleted_ms,
    "size": lambda row: (row.topic.size_bytes, row.topic.name),
    "expires": lambda row: row.topic.expires_ms,
}


class TrashRow(NamedTuple):
    """A deleted topic; `is_replaced` if a topic of its name exists again."""

    topic: TrashedTopicDescription
    topic_id: str
    left_ms: int
    is_replaced: bool


async def show(view: View) -> Response:
    """Show the list, the last deleted first; on Apache Kafka, a page that explains why there is none."""
    query = ListQuery.of("/trash", view.query, "")
    try:
        rows = await _rows(view)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return await view.page("trash_none.html")
    part = paged(
        rows,
        query,
        _COLUMNS,
        lambda row, text: text in row.topic.name.lower() or text in row.topic_id.lower(),
    )
    if view.is_partial:
        return await view.piece("trash_list.html", part=part)
    return await view.page("trash.html", part=part, rule=await trash_rule(view))


async def show_topic(view: View) -> Response:
    """Show one deleted topic, with forms to restore and to purge it."""
    return await _topic_page(view, await _row(view))


async def _topic_page(view: View, row: TrashRow, form: Form | None = None) -> Response:
    return await view.page(
        "trash_topic.html",
        status=400 if form else 200,
        row=row,
        here=f"/trash/{segment(row.topic_id)}",
        new_name=form.text("new_name") if form else "",
        errors=form.errors if form else {},
        may_change=not view.console.settings.read_only,
    )


async def undelete(view: View) -> Response:
    """Restore a topic under its own name or another."""
    row, form = await _row(view), await view.form()
    new_name = form.text("new_name")
    try:
        topic = await view.admin.undelete_topic(_named(row), new_name or None)
    except KafkaError as error:
        form.refuse("new_name", sentence(error))
        return await _topic_page(view, row, form)
    view.access.topics.clear()
    offsets = f" and {plural(topic.offsets, 'committed offset')}" if topic.offsets else ""
    notice = f"Topic {topic.name} is undeleted, with {plural(topic.partitions, 'partition')}{offsets}."
    return view.redirect_with_notice(f"/topics/{segment(topic.name)}", notice)


async def purge(view: View) -> Response:
    """Delete a topic for good, after its name was typed."""
    row, form = await _row(view), await view.form()
    if form.text("typed") != row.topic.name:
        form.refuse("typed", f"Type the topic's name, {row.topic.name}, to purge it.")
    else:
        try:
            raise_errors((await view.admin.purge_topics([_named(row)])).values())
        except KafkaError as error:
            form.refuse("typed", sentence(error))
    if form.errors:
        return await _topic_page(view, row, form)
    return view.redirect_with_notice("/trash", f"Topic {row.topic.name} ({row.topic_id}) is purged.")


async def _rows(view: View) -> list[TrashRow]:
    now_ms = view.console.clock.wall_ms()
    found = await view.admin.describe_trash()
    names = {row.name for row in await view.access.topics.get()} if found else set()
    return [
        TrashRow(each, uuid_to_text(each.topic_id), max(0, each.expires_ms - now_ms), each.name in names)
        for each in found
    ]


async def _row(view: View) -> TrashRow:
    """The deleted topic with the id in the address.

    :raises PageError: When there is none.
    """
    topic_id = view.path("id")
    for row in await _rows(view):
        if row.topic_id == topic_id:
            return row
    raise not_found(
        f"No deleted topic has the id {topic_id}. It may have been undeleted or purged, or may have expired."
    )


def _named(row: TrashRow) -> Trashed:
    return Trashed(row.topic.name, row.topic.topic_id)


MENU = MenuEntry("Data", "Deleted topics", "/trash")
ROUTES = (
    Route("/trash", show),
    Route("/trash/{id}", show_topic),
    Route("/trash/{id}/undelete", undelete, "POST"),
    Route("/trash/{id}/purge", purge, "POST"),
)
