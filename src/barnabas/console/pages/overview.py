"""An overview of the cluster, and its current throughput."""

from starlette.responses import Response

from barnabas.console.page import MenuEntry, Route
from barnabas.console.view import View


async def show(view: View) -> Response:
    """Show brokers, counts and problems."""
    cluster = await view.cluster_view()
    topics = await view.access.topics.get()
    return await view.page(
        "overview.html",
        cluster=cluster,
        topics_count=sum(not row.is_internal for row in topics),
        internal_count=sum(row.is_internal for row in topics),
        partitions_count=sum(row.partitions_count for row in topics),
        leaderless_count=sum(row.leaderless_count for row in topics),
        under_replicated_count=sum(row.under_replicated_count for row in topics),
        rates=await view.access.throughput.rates(),
    )


async def live(view: View) -> Response:
    """Show the current throughput, which htmx refreshes."""
    return await view.piece("overview_live.html", rates=await view.access.throughput.rates())


MENU = MenuEntry("Cluster", "Overview", "/")
ROUTES = (Route("/", show), Route("/live", live, is_poll=True))
