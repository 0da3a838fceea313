"""The groups of the cluster with their states and lags."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from barnabas.client.admin.group_messages import GroupListing
from barnabas.client.admin.groups import Groups
from barnabas.client.group_lags import LagTotal, PartitionLag, lags_of, total_lag
from barnabas.console.page import MenuEntry, Route
from barnabas.console.paging import ListQuery, paged
from barnabas.console.view import View
from barnabas.wire.errors import KafkaError

_COLUMNS = {
    "name": lambda group: group.group_id,
    "type": lambda group: (group.type, group.group_id),
    "state": lambda group: (group.state, group.group_id),
}


class GroupRow(NamedTuple):
    """A group and its lag: None if it reads no partition, or if the principal may not see it (`refused`)."""

    group: GroupListing
    lag: LagTotal | None
    refused: bool


async def show(view: View) -> Response:
    """Show the list; only lags of displayed groups are fetched."""
    query = ListQuery.of("/groups", view.query, "name", extra=("state",))
    everything = await Groups(view.cluster).list()
    states = sorted({group.state for group in everything if group.state})
    state = view.query.get("state", "")
    found = [group for group in everything if state in ("", group.state)]
    part = paged(found, query, _COLUMNS, lambda group, text: text in group.group_id.lower())
    lags = await lags_of(view.cluster, [group.group_id for group in part.rows])
    view.access.lags.look(lags)
    rows = [_row(group, lags[group.group_id]) for group in part.rows]
    context: dict[str, Any] = {"part": part, "rows": rows, "states": states, "state": state}
    if view.is_partial:
        return await view.piece("groups_list.html", **context)
    return await view.page("groups.html", **context)


def _row(group: GroupListing, lags: Sequence[PartitionLag] | KafkaError) -> GroupRow:
    if isinstance(lags, KafkaError):
        return GroupRow(group, None, refused=True)
    return GroupRow(group, total_lag(lags) if lags else None, refused=False)


MENU = MenuEntry("Data", "Groups", "/groups")
ROUTES = (Route("/groups", show),)
