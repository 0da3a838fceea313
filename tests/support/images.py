"""Cluster images for tests, built by replaying decisions as in production."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from barnabas.metadata.brokers import BrokerRegistration, Endpoint, decide_register
from barnabas.metadata.cluster import decide_form
from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.features import ELR_VERSION, FINALIZED_FEATURES
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import (
    PartitionChange,
    brokers_up,
    build_partition_change,
    find_partition,
    partition_puts,
)
from barnabas.metadata.store import Commit
from barnabas.metadata.topic_creation import CreationRules, TopicToCreate, decide_create
from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, TopicImage, partition_key
from barnabas.metadata.writer import MetadataWriter
from support.memory_store import single_changes

LISTENER = "PLAINTEXT"
RULES = CreationRules(1, 1, lambda overrides: None)


def broker(broker_id: int, **fields: Any) -> BrokerRegistration:
    """Return a broker with one endpoint."""
    return BrokerRegistration(broker_id, (Endpoint(LISTENER, f"host{broker_id}", 9092),), **fields)


async def register_brokers(writer: MetadataWriter, *broker_ids: int) -> None:
    """Register brokers with one endpoint each."""

    def register(image: MetadataImage, broker_id: int) -> Decision[BrokerRegistration]:
        return decide_register(image.brokers, broker(broker_id))

    for broker_id in broker_ids:
        await writer.write(partial(register, broker_id=broker_id))


def replayed(image: MetadataImage, decision: Decision[Any]) -> MetadataImage:
    """Return the image after a decision is committed."""
    if not decision.changes:
        return image
    changes = single_changes(_keys_of(image), decision.changes)
    return image.replay(Commit(image.revision + 1, changes))


def _keys_of(image: MetadataImage) -> Iterator[str]:
    return (f"{name}/{key}" for name, table in image.tables.items() for key in table)


def cluster(brokers_count: int = 1, *topics: TopicToCreate, fenced: Sequence[int] = ()) -> MetadataImage:
    """Return a formed cluster of brokers 1, 2, ... with these topics."""
    image = replayed(MetadataImage(), decide_form(MetadataImage().cluster, bytes(16), None))
    for broker_id in range(1, brokers_count + 1):
        joining = broker(broker_id, fenced=broker_id in fenced)
        image = replayed(image, decide_register(image.brokers, joining))
    return with_topics(image, *topics)


def with_topics(image: MetadataImage, *topics: TopicToCreate) -> MetadataImage:
    """Return the image after these topics were created; creation must succeed."""
    decision = decide_create(image, topics, RULES, random.Random(7), validate_only=False)
    assert not [outcome.error for outcome in decision.response if outcome.error]
    return replayed(image, decision)


def with_state(
    image: MetadataImage, topic: TopicImage, index: int, state: PartitionRegistration
) -> MetadataImage:
    """Return the image after a partition's state was written."""
    change = PARTITION_STATES.put(partition_key(topic.topic_id, index), state)
    return replayed(image, Decision(None, (change,)))


def with_elr(image: MetadataImage) -> MetadataImage:
    """Return the image after eligible leader replicas were enabled."""
    return replayed(image, Decision(None, (FINALIZED_FEATURES.put(ELR_VERSION, 1),)))


def decide_isr(
    image: MetadataImage, name: str, index: int, isr: Sequence[int], rules: ElectionRules = DEFAULT_RULES
) -> Decision[PartitionRegistration]:
    """Set the in-sync replicas of a partition, as its leader does."""
    topic, state = find_partition(image, name, index)
    min_isr = rules.min_isr_with_elr(image, name)
    target = replace(state, isr=tuple(isr))
    after = build_partition_change(state, target, brokers_up(image), min_isr=min_isr)
    changes = [] if after is state else [PartitionChange(topic, index, after)]
    return Decision(after, *partition_puts(image, changes))


def new_topic(
    name: str, partition_count: int = 1, replication_factor: int = 1, **fields: Any
) -> TopicToCreate:
    """Build a requested topic with both counts."""
    return TopicToCreate(name, partition_count, replication_factor, **fields)


def manually_assigned(
    name: str, *replicas: Sequence[int], configs: Mapping[str, str] | None = None
) -> TopicToCreate:
    """Build a requested topic with a manual assignment of partitions 0, 1, ..."""
    return TopicToCreate(name, assignments=dict(enumerate(replicas)), configs=configs)
