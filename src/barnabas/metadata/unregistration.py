"""UnregisterBroker: remove a broker that will not return (KIP-500)."""

from dataclasses import replace

from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import (
    PartitionChange,
    brokers_up,
    build_partition_change,
    partition_puts,
)
from barnabas.metadata.topic_deletion import decide_remove_deleted
from barnabas.wire.errors import ErrorCode, KafkaError


def decide_unregister(
    image: MetadataImage, broker_id: int, rules: ElectionRules = DEFAULT_RULES
) -> Decision[None]:
    """Remove a broker, and elect other leaders for its partitions.

    Its replicas stay assigned until they are reassigned. Its logs of deleted topics are not waited for any more.

    :raises KafkaError: BROKER_ID_NOT_REGISTERED; INVALID_REQUEST for a broker that is up.
    """
    key = str(broker_id)
    broker = image.brokers.get(key)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    if not broker.fenced:
        message = f"Broker {broker_id} is up: stop it first. Only a stopped broker can be unregistered."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    changes, reads = partition_puts(image, _partitions_without_broker(image, broker_id, rules))
    reads[BROKERS.key(key)] = image.brokers.revision(key)
    deleted = [topic.topic_id for topic in image.deleted_topics.values() if broker_id in topic.brokers]
    reported = decide_remove_deleted(image, deleted, broker_id)
    return Decision(None, (*changes, *reported.changes, BROKERS.remove(key)), {**reads, **reported.reads})


def _partitions_without_broker(
    image: MetadataImage, broker_id: int, rules: ElectionRules
) -> list[PartitionChange]:
    """Return the new state of each partition that had the broker as leader or in its ISR."""
    changes = []
    up = brokers_up(image) - {broker_id}
    for topic in image.topics.values():
        min_isr = rules.min_isr_with_elr(image, topic.name)
        for index in range(topic.partition_count):
            state = image.partition(topic, index)
            if broker_id != state.leader and broker_id not in state.isr:
                continue
            left = replace(state, isr=tuple(replica for replica in state.isr if replica != broker_id))
            after = build_partition_change(state, left, up, min_isr=min_isr)
            if after is not state:
                changes.append(PartitionChange(topic, index, after))
    return changes
