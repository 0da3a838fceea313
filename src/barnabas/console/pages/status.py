"""The status of the cluster: brokers, their metadata and load, unhealthy partitions."""

from starlette.responses import Response

from barnabas.client.admin.status import describe_cluster_status
from barnabas.console.page import MenuEntry, Route
from barnabas.console.view import View

#: Unhealthy partitions that the page shows.
PARTITIONS_MAX = 100


async def show(view: View) -> Response:
    status = await describe_cluster_status(view.cluster)
    partitions = status.unhealthy[:PARTITIONS_MAX]
    return await view.page("status.html", cluster_status=status, partitions=partitions)


MENU = MenuEntry("Cluster", "Status", "/status", needs="DESCRIBE")
ROUTES = (Route("/status", show),)
