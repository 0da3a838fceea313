"""Internal topics of the brokers, and how they are created when they are first needed."""

import random
from collections.abc import Callable, Sequence

from barnabas.base.topic_names import AUDIT_TOPIC, GROUP_TOPIC, SECURITY_TOPIC, TRANSACTION_TOPIC
from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_creation import (
    CreationRules,
    TopicCreationResult,
    TopicToCreate,
    decide_create,
    placeable_brokers,
)

#: The size of the topic of the security log, which grows with what clients do.
SECURITY_BYTES_MAX = 1 << 30

#: Internal topics that Barnabas creates, with configs of their own.
BROKER_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC, AUDIT_TOPIC, SECURITY_TOPIC})


def decide_create_internal_topics(
    image: MetadataImage,
    names: Sequence[str],
    config: BrokerConfig,
    rules: CreationRules,
    rng: random.Random,
    admit: Callable[[int], None] = lambda count: None,
) -> Decision[list[TopicCreationResult]]:
    """Decide the creation of some of `BROKER_TOPICS`, as `decide_create`."""
    broker_count = len(placeable_brokers(image).up)
    topics = [internal_topic(name, config, broker_count) for name in names]
    return decide_create(image, topics, rules, rng, validate_only=False, admit=admit)


def internal_topic(name: str, config: BrokerConfig, broker_count: int) -> TopicToCreate:
    """Return one of `BROKER_TOPICS` as configured.

    :param broker_count: Brokers that are neither fenced nor cordoned. The default replication factor is at most this,
        so that a single broker needs no settings.
    """
    if name == AUDIT_TOPIC:
        return _event_topic(name, broker_count, config.integer("barnabas.audit.retention.ms"), -1)
    if name == SECURITY_TOPIC:
        retention_ms = config.integer("barnabas.security.log.retention.ms")
        return _event_topic(name, broker_count, retention_ms, SECURITY_BYTES_MAX)
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
    return TopicToCreate(
        name,
        partition_count=config.integer(f"{prefix}.num.partitions"),
        replication_factor=factor if config.is_set(factor_key) else max(1, min(factor, broker_count)),
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": str(config.integer(f"{prefix}.segment.bytes")),
            **configs,
        },
    )


def _event_topic(name: str, broker_count: int, retention_ms: int, retention_bytes: int) -> TopicToCreate:
    """Return a topic of events: one partition, so that events have one order, and the replication factor of the
    coordinators' topics."""
    return TopicToCreate(
        name,
        partition_count=1,
        replication_factor=max(1, min(3, broker_count)),
        configs={
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "retention.bytes": str(retention_bytes),  # independent of other topics
            "retention.ms": str(retention_ms),
        },
    )
