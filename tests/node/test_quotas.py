"""Throttled clients over real sockets: they get a throttle time, and are muted until it is over."""

from typing import Any, cast

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from support.batches import batch
from support.quotas import quota
from support.wire import Wire, produce_request

ANONYMOUS = {"user": "ANONYMOUS"}


@pytest.fixture
def topic(kafka: EmbeddedBroker) -> str:
    kafka.create_topic("t")
    return "t"


def muted_count(kafka: EmbeddedBroker) -> int:
    return sum(
        cast("Any", each).statistics()["phase"] == "THROTTLED"
        for each in kafka.server.parts.connections._open
    )


def test_a_throttled_producer_gets_a_throttle_time_and_is_muted(
    kafka: EmbeddedBroker, wire: Wire, topic: str
) -> None:
    wire.ask(quota(ANONYMOUS, producer_byte_rate=10_000.0))
    request = produce_request(topic, wire.topic_id(topic), batch(b"x" * 110_000))
    assert wire.ask(request).throttle_time_ms > 0
    assert muted_count(kafka) == 1
    wire.ask(MetadataRequest([]))
    assert muted_count(kafka) == 0


def test_requests_sent_while_muted_are_answered_afterwards(wire: Wire, topic: str) -> None:
    wire.ask(quota(ANONYMOUS, producer_byte_rate=10_000.0))
    request = produce_request(topic, wire.topic_id(topic), batch(b"x" * 55_000))
    sent = [wire.send(request) for _ in range(3)]
    waits_ms = [wire.receive(ProduceRequest, each).throttle_time_ms for each in sent]
    assert waits_ms[0] == 0
    assert waits_ms[1] > 0


def test_a_throttled_consumer_eventually_reads_everything(
    kafka: EmbeddedBroker, wire: Wire, topic: str
) -> None:
    for number in range(3):
        wire.produce(topic, batch(b"%d" % number * 40_000))
    wire.ask(quota({"client-id": "test"}, consumer_byte_rate=10_000.0))
    read, waits_ms = [], []
    while len(read) < 3:
        answer = wire.ask(wire.fetch_request(topic, len(read), partition_max_bytes=50_000))
        waits_ms.append(answer.throttle_time_ms)
        read += [data.records for each in answer.responses for data in each.partitions if data.records]
    assert any(waits_ms)
    assert kafka.server.broker.quotas.statistics()["throttled_count"] > 0


def test_a_throttled_fetch_creates_no_session(kafka: EmbeddedBroker, wire: Wire, topic: str) -> None:
    wire.produce(topic, batch(b"x" * 90_000))
    wire.ask(quota({"client-id": "test"}, consumer_byte_rate=1_000.0))
    request = wire.fetch_request(topic, 0)
    request.session_id, request.session_epoch = 0, 0
    answer = wire.ask(request)
    assert answer.throttle_time_ms > 0
    assert answer.session_id == 0
    assert kafka.server.broker.fetch_sessions.statistics()["sessions_count"] == 0


def test_the_fetch_of_a_follower_is_not_throttled(wire: Wire, topic: str) -> None:
    request = wire.fetch_request(topic, 0)
    wire.ask(quota(ANONYMOUS, request_percentage=1e-6))
    request.replica_state.replica_id = 2
    assert wire.ask(request).throttle_time_ms == 0
    request.replica_state.replica_id = -1
    assert wire.ask(request).throttle_time_ms > 0


def test_connections_beyond_the_rate_limit_are_closed_without_being_read(
    kafka: EmbeddedBroker, wire: Wire
) -> None:
    wire.ask(quota({"ip": "127.0.0.1"}, connection_creation_rate=1.0))
    for _ in range(10):
        with Wire(kafka.port) as other:
            other.ask(MetadataRequest([]))
    with Wire(kafka.port) as refused:
        refused.send(MetadataRequest([]))
        assert refused.is_closed()
    wire.ask(quota({"ip": "127.0.0.1"}, connection_creation_rate=None))
    with Wire(kafka.port) as welcome:
        welcome.ask(MetadataRequest([]))


def test_quotas_survive_a_restart(kafka: EmbeddedBroker, wire: Wire) -> None:
    wire.ask(quota(ANONYMOUS, request_percentage=1e-6))
    kafka.restart()
    with Wire(kafka.port) as after:
        assert after.ask(MetadataRequest([])).throttle_time_ms > 0
