"""The topics in which coordinators keep what they know: how they are made when somebody first needs them."""

from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.topic_creation import NewTopic

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"

#: Those that are made here: no other topic comes with settings of its own.
COORDINATOR_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC})


def internal_topic(name: str, config: BrokerConfig, broker_count: int) -> NewTopic:
    """One of `COORDINATOR_TOPICS`, as the configuration wants it.

    :param broker_count: Brokers that can take replicas now. A replication factor that nobody has set is no larger than
        that, so that a single broker needs no settings.
    """
    if name == GROUP_TOPIC:
        prefix, configs = "offsets.topic", {"compression.type": "producer"}
    else:
        prefix = "transaction.state.log"
        configs = {
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.integer(f"{prefix}.min.isr")),
            "unclean.leader.election.enable": "false",
        }
    factor_key = f"{prefix}.replication.factor"
    factor = config.integer(factor_key)
    return NewTopic(
        name,
        partition_count=config.integer(f"{prefix}.num.partitions"),
        replication_factor=factor if config.is_set(factor_key) else max(1, min(factor, broker_count)),
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": str(config.integer(f"{prefix}.segment.bytes")),
            **configs,
        },
    )
