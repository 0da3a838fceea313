"""Fetch: long polls, limits, epochs, topic ids, sessions."""

import threading
import time

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from support.batches import batch, values_of
from support.wire import ALL_BYTES, Wire

LONG_MS = 10_000


def test_a_long_poll_completes_when_min_bytes_are_available(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    one = batch(b"x" * 100)
    correlation = wire.send(wire.fetch_request("t", 0, min_bytes=len(one) + 1, max_wait_ms=LONG_MS))
    with Wire(kafka.port) as other:
        started_s = time.monotonic()
        other.produce("t", one)
        assert other.fetch("t").high_watermark == 1
        other.produce("t", one)
    data = wire.receive(FetchRequest, correlation).responses[0].partitions[0]
    assert len(values_of(data.records)) == 2
    assert time.monotonic() - started_s < LONG_MS / 2000


def test_a_long_poll_returns_available_records_at_its_timeout(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.produce("t", batch(b"x"))
    started_s = time.monotonic()
    data = wire.fetch("t", min_bytes=10_000, max_wait_ms=200)
    assert 0.19 <= time.monotonic() - started_s < 5
    assert values_of(data.records) == [b"x"]


def test_min_bytes_counts_all_partitions_of_a_long_poll(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", partitions=2)
    one = batch(b"x" * 100)
    request = wire.fetch_request("t", 0, min_bytes=2 * len(one), max_wait_ms=LONG_MS)
    request.topics[0].partitions.append(FetchPartition(partition=1, partition_max_bytes=ALL_BYTES))
    correlation = wire.send(request)
    with Wire(kafka.port) as other:
        for partition in (0, 1):
            other.produce("t", one, partition=partition)
    answers = wire.receive(FetchRequest, correlation).responses[0].partitions
    assert [len(values_of(data.records)) for data in answers] == [1, 1]


def test_a_long_poll_with_a_partition_error_does_not_wait(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", partitions=2)
    request = wire.fetch_request("t", 0, min_bytes=1, max_wait_ms=LONG_MS)
    request.topics[0].partitions.append(
        FetchPartition(partition=1, fetch_offset=9, partition_max_bytes=ALL_BYTES)
    )
    started_s = time.monotonic()
    good, bad = wire.ask(request).responses[0].partitions
    assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert time.monotonic() - started_s < LONG_MS / 2000


def test_a_long_poll_ends_when_its_topic_is_deleted(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.topic_id("t")
    correlation = wire.send(wire.fetch_request("t", 0, min_bytes=1, max_wait_ms=LONG_MS))
    started_s = time.monotonic()
    kafka.delete_topic("t")
    data = wire.receive(FetchRequest, correlation).responses[0].partitions[0]
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert time.monotonic() - started_s < LONG_MS / 2000


def test_many_concurrent_long_polls_complete(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wires = [Wire(kafka.port) for _ in range(50)]
    correlation = [each.send(each.fetch_request("t", 0, min_bytes=1, max_wait_ms=LONG_MS)) for each in wires]
    wire.produce("t", batch(b"x"))
    for each, correlation_id in zip(wires, correlation, strict=True):
        data = each.receive(FetchRequest, correlation_id).responses[0].partitions[0]
        assert values_of(data.records) == [b"x"]
        each.close()


@pytest.mark.parametrize("limit", ["max_bytes", "partition_max_bytes"])
@pytest.mark.parametrize("size", [0, 1, 61, 400])
def test_the_first_batch_is_complete_whatever_the_limit(
    kafka: EmbeddedBroker, wire: Wire, limit: str, size: int
) -> None:
    """KIP-74: a fetch must make progress."""
    kafka.create_topic("t")
    for _ in range(3):
        wire.produce("t", batch(b"x" * 1000))
    assert len(values_of(wire.fetch("t", **{limit: size}).records)) == 1


def test_limits_may_leave_a_partial_batch_at_the_end(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    one = batch(b"x" * 1000)
    for _ in range(5):
        wire.produce("t", one)
    records = bytes(wire.fetch("t", partition_max_bytes=2 * len(one)).records or b"")
    assert len(records) == 2 * len(one)
    records = bytes(wire.fetch("t", max_bytes=2 * len(one) + 100).records or b"")
    assert 2 * len(one) <= len(records) <= 2 * len(one) + 100


def test_max_bytes_applies_to_all_partitions_together(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t", partitions=3)
    one = batch(b"x" * 1000)
    for partition in range(3):
        wire.produce("t", one, partition=partition)
    request = wire.fetch_request("t", 0, max_bytes=2 * len(one))
    request.topics[0].partitions += [
        FetchPartition(partition=index, partition_max_bytes=ALL_BYTES) for index in (1, 2)
    ]
    sizes = [len(data.records) for data in wire.ask(request).responses[0].partitions]
    assert sizes == [len(one), len(one), 0]


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_an_offset_outside_the_log_is_out_of_range(kafka: EmbeddedBroker, wire: Wire, offset: int) -> None:
    kafka.create_topic("t")
    wire.produce("t", batch(b"a", b"b", b"c"))
    data = wire.fetch("t", offset)
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert not data.records


def test_a_fetch_at_the_log_end_is_empty(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.produce("t", batch(b"a", b"b", b"c"))
    data = wire.fetch("t", 3)
    assert (data.error_code, data.high_watermark, data.records) == (ErrorCode.NONE, 3, b"")


def test_an_offset_within_a_batch_returns_the_whole_batch(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.produce("t", batch(b"a", b"b", b"c"))
    assert values_of(wire.fetch("t", 2).records) == [b"a", b"b", b"c"]


def test_a_leader_epoch_that_is_not_current_is_an_error(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    assert wire.fetch("t", current_leader_epoch=0).error_code == ErrorCode.NONE
    assert wire.fetch("t", current_leader_epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_deleted_topics_id_is_unknown(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    old = wire.topic_id("t")
    kafka.delete_topic("t")
    kafka.create_topic("t")
    assert wire.fetch("t").error_code == ErrorCode.UNKNOWN_TOPIC_ID
    with Wire(kafka.port) as fresh:
        assert fresh.topic_id("t") != old
        assert fresh.fetch("t").error_code == ErrorCode.NONE
    assert wire.fetch("t", version=12).error_code == ErrorCode.NONE  # by name


# Sessions (KIP-227)


def session_request(wire: Wire, session_id: int, epoch: int, *topics: str) -> FetchRequest:
    request = FetchRequest(session_id=session_id, session_epoch=epoch)
    request.topics = [
        FetchTopic(
            topic=topic,
            topic_id=wire.topic_id(topic),
            partitions=[FetchPartition(partition_max_bytes=ALL_BYTES)],
        )
        for topic in topics
    ]
    return request


def topics_in(response: FetchResponse, wire: Wire, *topics: str) -> list[str]:
    """Return the topics in a response."""
    names = {wire.topic_id(topic): topic for topic in topics}
    return [names[topic.topic_id] for topic in response.responses]


def test_an_incremental_fetch_returns_only_changed_partitions(kafka: EmbeddedBroker, wire: Wire) -> None:
    names = ("a", "b")
    for name in names:
        kafka.create_topic(name)
    first = wire.ask(session_request(wire, 0, 0, *names))
    assert first.session_id > 0
    assert topics_in(first, wire, *names) == ["a", "b"]
    nothing = wire.ask(session_request(wire, first.session_id, 1))
    assert (nothing.session_id, nothing.responses) == (first.session_id, [])
    wire.produce("b", batch(b"x"))
    news = wire.ask(session_request(wire, first.session_id, 2))
    assert topics_in(news, wire, *names) == ["b"]
    assert values_of(news.responses[0].partitions[0].records) == [b"x"]


def test_partitions_are_added_to_and_forgotten_by_a_session(kafka: EmbeddedBroker, wire: Wire) -> None:
    names = ("a", "b")
    for name in names:
        kafka.create_topic(name)
        wire.produce(name, batch(b"x"))
    session_id = wire.ask(session_request(wire, 0, 0, "a")).session_id
    request = session_request(wire, session_id, 1, "b")
    request.forgotten_topics_data = [ForgottenTopic(topic="a", topic_id=wire.topic_id("a"), partitions=[0])]
    assert topics_in(wire.ask(request), wire, *names) == ["b"]
    wire.produce("a", batch(b"y"))
    assert topics_in(wire.ask(session_request(wire, session_id, 2)), wire, *names) == ["b"]


def test_a_session_fetch_waits_for_new_records(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("a")
    session_id = wire.ask(session_request(wire, 0, 0, "a")).session_id
    request = session_request(wire, session_id, 1)
    request.min_bytes, request.max_wait_ms = 1, LONG_MS
    correlation = wire.send(request)
    writer = threading.Thread(target=kafka.produce, args=("a", "x"))
    writer.start()
    assert topics_in(wire.receive(FetchRequest, correlation), wire, "a") == ["a"]
    writer.join()


def test_a_wrong_session_id_or_epoch_is_an_error(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("a")
    session_id = wire.ask(session_request(wire, 0, 0, "a")).session_id
    unknown = wire.ask(session_request(wire, session_id + 1, 1))
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert wire.ask(session_request(wire, session_id, 5)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert wire.ask(session_request(wire, session_id, 1)).error_code == ErrorCode.NONE


def test_a_session_ends_with_the_final_epoch(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("a")
    session_id = wire.ask(session_request(wire, 0, 0, "a")).session_id
    assert wire.ask(session_request(wire, session_id, -1, "a")).session_id == 0
    ended = wire.ask(session_request(wire, session_id, 1))
    assert ended.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_survives_its_connection_but_not_a_restart(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("a")
    session_id = wire.ask(session_request(wire, 0, 0, "a")).session_id
    with Wire(kafka.port) as other:
        assert other.ask(session_request(other, session_id, 1)).error_code == ErrorCode.NONE
    kafka.restart()
    with Wire(kafka.port) as other:
        gone = other.ask(session_request(other, session_id, 2))
        assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.kafka_settings({"max.incremental.fetch.session.cache.slots": "0"})
def test_with_a_full_session_cache_fetches_are_full_fetches(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("a")
    response = wire.ask(session_request(wire, 0, 0, "a"))
    assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
    assert topics_in(response, wire, "a") == ["a"]
