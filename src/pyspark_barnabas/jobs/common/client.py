"""Check of the brokers that a job uses."""

from barnabas.client.blocking import BlockingClient
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.errors import KafkaError

#: A config that every Barnabas broker has and no other broker does.
_BARNABAS_CONFIG = "barnabas.log.format"


class NotBarnabas(ValueError):
    """The operation needs a Barnabas broker, but the broker is another one."""


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
