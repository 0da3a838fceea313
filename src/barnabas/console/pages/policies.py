"""Policies: those of each broker, and where to try them."""

from starlette.responses import Response

from barnabas.client.admin.model import ConfigEntry
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.console.page import MenuEntry, Route
from barnabas.console.view import View
from barnabas.wire.errors import KafkaError

RULES = "barnabas.policy.file"
#: The configs that give a broker its policies.
KEYS = (
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
    RULES,
    "barnabas.policy.timeout.ms",
)


async def show(view: View) -> Response:
    """Show the policies of each broker."""
    rows: list[tuple[int, ConfigEntry]] = []
    for node in (await view.cluster_view()).nodes:
        resource = Resource(ResourceKind.BROKER, str(node.node_id))
        outcome = (await view.admin.describe_configs([resource], KEYS, documentation=True))[resource]
        if isinstance(outcome, KafkaError):
            raise outcome
        rows += [(node.node_id, entry) for entry in sorted(outcome, key=lambda entry: KEYS.index(entry.name))]
    are_set = any(entry.value for _, entry in rows if not entry.name.endswith(".ms"))
    knows_rules = any(entry.name == RULES for _, entry in rows)
    return await view.page("policies.html", rows=rows, are_set=are_set, knows_rules=knows_rules)


MENU = MenuEntry("Security", "Policies", "/policies", needs="DESCRIBE_CONFIGS")
ROUTES = (Route("/policies", show),)
