"""The cluster at a glance."""

from starlette.responses import Response

from barnabas.console.page import MenuEntry, Route
from barnabas.console.view import View


async def show(view: View) -> Response:
    """Brokers, and how much there is of everything."""
    cluster = await view.cluster_view()
    return await view.page("overview.html", cluster=cluster)


MENU = MenuEntry("Cluster", "Overview", "/")
ROUTES = (Route("/", show),)
