"""The brokers of the cluster as a client sees them through the listener that it came in by."""

from barnabas.api.context import RequestContext
from barnabas.metadata.brokers import BrokerRegistration, Endpoint


def reachable_brokers(
    context: RequestContext, *, include_fenced: bool = False
) -> list[tuple[BrokerRegistration, Endpoint]]:
    """Every broker that has the client's listener, by id, and where it is reached."""
    brokers = sorted(context.node.image.brokers.values(), key=lambda broker: broker.broker_id)
    found = []
    for broker in brokers:
        endpoint = broker.endpoint(context.connection.listener)
        if endpoint is not None and (include_fenced or not broker.fenced):
            found.append((broker, endpoint))
    return found
