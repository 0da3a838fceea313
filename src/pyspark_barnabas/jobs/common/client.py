"""Client for the driver of a job, configured by the options of the source."""

from barnabas.client.blocking import BlockingClient
from barnabas.client.core.retry import Retry
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.source.options import ConnectionOptions

#: A config that every Barnabas broker has and no other broker does.
_BARNABAS_CONFIG = "barnabas.log.format"


class NotBarnabas(ValueError):
    """The operation needs a Barnabas broker, but the broker is another one."""


def connected(options: ConnectionOptions, request_timeout_ms: int | None = None) -> BlockingClient:
    """Return a connected client; the caller closes it.

    :raises BrokerConnectionError: No broker can be reached.
    """
    return BlockingClient(
        options.bootstrap,
        client_id=options.client_id,
        login=options.login,
        tls=options.tls,
        request_timeout_ms=request_timeout_ms or options.request_timeout_ms,
        retry=Retry(timeout_ms=options.request_timeout_ms),
    )


def check_barnabas(client: BlockingClient, reason: str) -> None:
    """Check that a broker is Barnabas; a broker that denies DescribeConfigs is assumed to be.

    :param reason: Why Barnabas is needed, and the alternative for other brokers.
    :raises NotBarnabas: It is another broker.
    """
    node = min(client.cluster.metadata.nodes)
    [entries] = client.admin.describe_configs(
        [Resource(ResourceKind.BROKER, str(node))], [_BARNABAS_CONFIG]
    ).values()
    if not isinstance(entries, KafkaError) and not entries:
        raise NotBarnabas(f"broker {node} is not a Barnabas broker: {reason}")
