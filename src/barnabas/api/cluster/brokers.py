"""The brokers of the cluster, as clients see them through their listener."""

from barnabas.api.context import RequestContext
from barnabas.metadata.brokers import BrokerRegistration, Endpoint


def reachable_brokers(
    context: RequestContext, *, include_fenced: bool = False
) -> list[tuple[BrokerRegistration, Endpoint]]:
    """Return the endpoint of every broker that has the client's listener, by broker id."""
    brokers = sorted(context.broker.image.brokers.values(), key=lambda broker: broker.broker_id)
    reachable = []
    for broker in brokers:
        endpoint = broker.endpoint(context.connection.listener)
        if endpoint is not None and (include_fenced or not broker.fenced):
            reachable.append((broker, endpoint))
    return reachable
