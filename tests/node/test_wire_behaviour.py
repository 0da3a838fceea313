"""Behaviour that specifications leave to the broker, and where another gateway takes a short cut."""

import struct

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.record import Record, decode_all, encode_batch
from support.admin import describe
from support.batches import NOW_MS, batch, values_of
from support.nodes import ADVERTISED_APIS, frame_of, response_of
from support.wire import Wire


def served(wire: Wire) -> dict[int, tuple[int, int]]:
    response = wire.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


# The gateway of spec/wire-compatibility, item by item


def test_every_api_is_served_in_its_flexible_versions(wire: Wire) -> None:
    versions = served(wire)
    for key, spec in ADVERTISED_APIS.items():
        assert versions[key][1] == spec.versions.last
        assert spec.request.FLEXIBLE.first <= spec.versions.last, spec.name


def test_the_offset_for_a_timestamp_is_exact(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.produce("t", encode_batch([Record(0, NOW_MS + at, None, b"x") for at in (0, 10, 20)]))
    assert [wire.list_offset("t", NOW_MS + at).offset for at in (0, 1, 10, 20, 21)] == [0, 1, 1, 2, -1]


def test_the_earliest_offset_is_the_log_start_offset(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    wire.produce("t", batch(b"a", b"b"))
    topic = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(offset=1)])
    wire.ask(DeleteRecordsRequest(topics=[topic]))
    assert wire.list_offset("t", -2).offset == 1


def test_keys_headers_and_timestamps_are_stored(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("t")
    record = Record(0, NOW_MS, b"key", b"value", (("a", b"1"), ("a", None)))
    wire.produce("t", encode_batch([record]))
    assert decode_all(bytes(wire.fetch("t").records or b"")) == [record]


@pytest.mark.parametrize("damage", [17, 40, 61, 64])
def test_an_invalid_batch_is_corrupt_and_not_out_of_range(
    kafka: EmbeddedBroker, wire: Wire, damage: int
) -> None:
    kafka.create_topic("t")
    broken = bytearray(batch(b"value"))
    broken[damage] ^= 0x40
    assert wire.produce("t", broken).error_code == ErrorCode.CORRUPT_MESSAGE
    assert wire.list_offset("t", -1).offset == 0


@pytest.mark.parametrize("records", [b"", b"x" * 10, b"\0" * 61, None])
def test_bytes_other_than_a_batch_are_rejected(
    kafka: EmbeddedBroker, wire: Wire, records: bytes | None
) -> None:
    kafka.create_topic("t")
    assert wire.produce("t", records).error_code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    assert wire.list_offset("t", -1).offset == 0


# ApiVersions


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_api_versions_has_the_same_table(wire: Wire, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    response = wire.ask(request, version)
    assert {api.api_key for api in response.api_keys} == set(ADVERTISED_APIS)


def test_a_newer_api_versions_request_is_answered_in_version_0(wire: Wire) -> None:
    """KIP-511."""
    wire.send_frame(struct.pack(">hhih", 18, 99, 7, -1) + b"\x00whatever")
    answer = response_of(ApiVersionsResponse, 0, wire.receive_frame(), 7)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {api.api_key for api in answer.api_keys} == set(ADVERTISED_APIS)
    assert served(wire)  # the connection stays open


# Bad input


@pytest.mark.parametrize(("key", "version"), [(9999, 0), (-1, 0), (4, 0), (0, 99), (1, -1), (3, 14)])
def test_an_unknown_api_or_version_closes_the_connection_with_an_error(
    wire: Wire, key: int, version: int
) -> None:
    wire.send_frame(struct.pack(">hhih", key, version, 7, -1) + b"\0" * 20)
    assert wire.receive_frame() == struct.pack(">iih", 6, 7, ErrorCode.UNSUPPORTED_VERSION)
    assert wire.is_closed()


@pytest.mark.parametrize("size", [-1, -(2**31), 104_857_601, 2**31 - 1])
def test_a_frame_with_an_invalid_size_closes_only_its_connection(
    kafka: EmbeddedBroker, wire: Wire, size: int
) -> None:
    with Wire(kafka.port) as neighbour:
        wire.socket.sendall(struct.pack(">i", size))
        assert wire.is_closed()
        assert served(neighbour)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0",
        struct.pack(">hhi", 3, 9, 7),
        struct.pack(">hhih", 3, 9, 7, 100),
        struct.pack(">hhih", 3, 1, 7, 2) + b"\xff\xfe",
        struct.pack(">hhih", 3, 1, 7, -1) + struct.pack(">i", 2**31 - 1),
        frame_of(ProduceRequest(acks=1), 9)[:-3],
    ],
)
def test_a_malformed_request_closes_only_its_connection(
    kafka: EmbeddedBroker, wire: Wire, frame: bytes
) -> None:
    with Wire(kafka.port) as neighbour:
        wire.send_frame(frame)
        assert wire.is_closed()
        assert served(neighbour)


def test_requests_before_a_malformed_one_are_answered(wire: Wire) -> None:
    good = frame_of(ApiVersionsRequest(), 0)
    frames = b"".join(len(frame).to_bytes(4, "big") + frame for frame in (good, good, b"junk"))
    wire.socket.sendall(frames)
    for _ in range(2):
        assert response_of(ApiVersionsResponse, 0, wire.receive_frame()).error_code == ErrorCode.NONE
    assert wire.is_closed()


def test_requests_may_arrive_in_fragments_or_together(wire: Wire) -> None:
    frame = frame_of(ApiVersionsRequest(), 0)
    data = len(frame).to_bytes(4, "big") + frame
    for byte in data:
        wire.socket.sendall(bytes([byte]))
    wire.socket.sendall(data * 500)
    for _ in range(501):
        response_of(ApiVersionsResponse, 0, wire.receive_frame())


def test_an_invalid_topic_does_not_fail_others(kafka: EmbeddedBroker, wire: Wire) -> None:
    kafka.create_topic("good")
    topics = describe(wire, "good", "nope", "a b").topics
    assert [topic.error_code for topic in topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


# Restarts


@pytest.mark.parametrize("kill", [False, True])
def test_a_restart_keeps_topics_configs_records_and_ids(
    kafka: EmbeddedBroker, wire: Wire, kill: bool
) -> None:
    kafka.create_topic("t", partitions=3, configs={"retention.ms": "-1"})
    kafka.create_topic("gone")
    before = describe(wire, everything=True)
    for partition in range(3):
        wire.produce("t", batch(b"a", b"b"), partition=partition)
    kafka.delete_topic("gone")
    kafka.restart(kill=kill)
    with Wire(kafka.port) as after:
        again = describe(after, everything=True)
        assert again.cluster_id == before.cluster_id
        assert again.topics == [topic for topic in before.topics if topic.name == "t"]
        for partition in range(3):
            data = after.fetch("t", partition=partition)
            assert (values_of(data.records), data.high_watermark) == ([b"a", b"b"], 2)
        assert kafka.server.broker.image.topic_configs["t"] == {"retention.ms": "-1"}
