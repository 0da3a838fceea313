"""The quorum and the features of the cluster."""

from starlette.responses import Response

from barnabas.base.ids import uuid_to_text
from barnabas.client.admin.cluster_control import QuorumDescription
from barnabas.console.page import MenuEntry, Route
from barnabas.console.problems import sentence
from barnabas.console.view import View
from barnabas.wire.errors import KafkaError


async def show(view: View) -> Response:
    """Show the quorum, as far as permitted, and the features."""
    quorum: QuorumDescription | None = None
    refusal = ""
    try:
        quorum = await view.admin.describe_metadata_quorum()
    except KafkaError as error:
        refusal = sentence(error)
    members = []
    if quorum is not None:
        members += [("voter", each) for each in quorum.voters]
        members += [("observer", each) for each in quorum.observers]
    return await view.page(
        "quorum.html",
        quorum=quorum,
        members=members,
        refusal=refusal,
        features=await view.admin.describe_features(),
        uuid_to_text=uuid_to_text,
    )


MENU = MenuEntry("Cluster", "Quorum and features", "/quorum")
ROUTES = (Route("/quorum", show),)
