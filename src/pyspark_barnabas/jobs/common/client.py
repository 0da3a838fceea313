"""A client for the driver of a job, on the options of the source."""

from barnabas.client.blocking import BlockingClient
from barnabas.client.core.retry import Retry
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.source.options import ConnectionOptions

#: A config that every Barnabas has, and no other broker.
_ITS_OWN = "barnabas.log.format"


class NotBarnabas(ValueError):
    """What is to be done needs a Barnabas broker, and there is another."""


def connected(options: ConnectionOptions, request_timeout_ms: int | None = None) -> BlockingClient:
    """A client that is connected; to be closed.

    :raises BrokerConnectionError: When none of the brokers answers.
    """
    return BlockingClient(
        options.bootstrap,
        client_id=options.client_id,
        login=options.login,
        request_timeout_ms=request_timeout_ms or options.request_timeout_ms,
        retry=Retry(timeout_ms=options.request_timeout_ms),
    )


def check_barnabas(client: BlockingClient, what: str) -> None:
    """See that a broker is Barnabas; one that may not be asked is taken for it.

    :param what: What needs it, and what can be done on others.
    :raises NotBarnabas: It is another.
    """
    node = min(client.cluster.metadata.nodes)
    [found] = client.admin.describe_configs([Resource(ResourceKind.BROKER, str(node))], [_ITS_OWN]).values()
    if not isinstance(found, KafkaError) and not found:
        raise NotBarnabas(f"broker {node} is no Barnabas: {what}")
