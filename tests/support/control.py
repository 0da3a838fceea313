"""What one broker alone cannot bring about: a second broker that joins, a partition without a leader."""

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from barnabas.metadata.brokers import SESSIONS, decide_register
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER, PARTITION_STATES, partition_key
from barnabas.testing import EmbeddedBroker
from support.images import broker

SECOND = 2


def _run(kafka: EmbeddedBroker, work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on the broker's own thread."""
    assert kafka._thread is not None
    kafka._thread.run(work)


def add_broker(kafka: EmbeddedBroker, *, fenced: bool = False) -> None:
    """Register a broker SECOND that does not exist."""
    joining = broker(SECOND, fenced=fenced)

    def decide(image: MetadataImage) -> Decision[None]:
        session = SESSIONS.put(str(SECOND), 0)  # without it, the controller would fence the broker
        return Decision(None, (*decide_register(image.brokers, joining).changes, session))

    _run(kafka, kafka.server.broker.metadata.write(decide))


def remove_leader(kafka: EmbeddedBroker, topic: str, index: int = 0) -> None:
    """Leave a partition without a leader."""

    def decide(image: MetadataImage) -> Decision[None]:
        found = image.topics[topic]
        left = replace(image.partition(found, index), leader=NO_LEADER)
        return Decision(None, (PARTITION_STATES.put(partition_key(found.topic_id, index), left),))

    _run(kafka, kafka.server.broker.metadata.write(decide))
