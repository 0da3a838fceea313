"""Requests of every API and long-lived objects leave no reference cycles, which would stay in memory for a day."""

import gc
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakSet

import pytest
from bench.stalls.forms import forms, namings
from bench.stalls.measured_broker import MeasuredBroker, state

from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from node.test_stalls import NAMES
from support.waiting import until

TOPICS_COUNT = 20
ELEMENTS_COUNT = 500

#: asyncio's own transports, unlike uvloop's, are in cycles: the number of objects for the connections of one form.
CONNECTIONS_GARBAGE_COUNT = 50


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredBroker]:
    with MeasuredBroker(tmp_path_factory.mktemp("garbage"), TOPICS_COUNT) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _not_collected_meanwhile() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("api", NAMES)
def test_large_requests_leave_no_cycles(broker: MeasuredBroker, api: str) -> None:
    topics = broker.server.broker.image.topics
    ids = [topic.topic_id for name, topic in topics.items() if name.startswith("topic-")] or [bytes(16)]
    named = {key: naming for key, naming in namings(TOPICS_COUNT).items() if key in ("topics", "unknown")}
    for form in forms(named, ids, ELEMENTS_COUNT):
        if form.spec.name == api:
            frame = form.frame(1)
            broker.hold_of(len(frame).to_bytes(4, "big") + frame)
            assert gc.collect() <= CONNECTIONS_GARBAGE_COUNT, form.name


def test_a_deleted_topic_is_freed_immediately(tmp_path: Path) -> None:
    with MeasuredBroker(tmp_path, 0) as broker:
        for request in state(TOPICS_COUNT):
            broker.ask(request)
        made = (each for each in broker.server.broker.replicas if each.topic.startswith("topic-"))
        logs = WeakSet(partition.log for partition in made)
        assert len(logs) == TOPICS_COUNT
        names = [f"topic-{number}" for number in range(TOPICS_COUNT)]
        topics = [DeleteTopicState(name=name) for name in names]
        broker.ask(DeleteTopicsRequest(topics=topics, timeout_ms=10_000))
        until(lambda: not logs)
