"""All topics: searched, sorted and paged."""

from collections.abc import Mapping, Sequence

from starlette.responses import Response

from barnabas.console.page import MenuEntry, Route
from barnabas.console.paging import ListQuery, paged
from barnabas.console.topic_list import TopicRow, TopicSize, topic_sizes
from barnabas.console.view import View

_COLUMNS = {
    "name": lambda row: row.name,
    "partitions": lambda row: row.partitions_count,
    "replicas": lambda row: row.replication_factor,
    "health": lambda row: (row.leaderless_count, row.under_replicated_count),
}


async def show(view: View) -> Response:
    """Show the list, or only its table for htmx."""
    query = ListQuery.of("/topics", view.query, "name", extra=("internal",))
    rows = await view.access.topics.get()
    internal = bool(view.query.get("internal"))
    shown = [row for row in rows if internal or not row.is_internal]
    topics = paged(shown, query, _COLUMNS, _matches)
    sizes = await _sizes(view, topics.rows)
    if view.is_partial:
        return await view.piece("topics_table.html", topics=topics, sizes=sizes)
    operations = (await view.cluster_view()).operations
    return await view.page(
        "topics.html",
        topics=topics,
        sizes=sizes,
        internal=internal,
        may_create=view.offers("CREATE", operations),
    )


async def _sizes(view: View, rows: Sequence[TopicRow]) -> Mapping[str, TopicSize] | None:
    """Sizes of the displayed topics by name; None if the principal may not see them."""
    cluster = await view.cluster_view()
    if "DESCRIBE" not in cluster.operations:
        return None
    return await topic_sizes(view.admin, [each.node_id for each in cluster.nodes], rows)


def _matches(row: TopicRow, text: str) -> bool:
    return text in row.name.lower()


MENU = MenuEntry("Data", "Topics", "/topics")
ROUTES = (Route("/topics", show),)
