"""Fetches decoded and encoded in place equal those of the message classes and of kio."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from barnabas.api.data.fetch_codec import (
    COPIED_RECORDS_BYTES_MAX,
    FIRST_VERSION_WITH_REPLICA_STATE,
    FIRST_VERSION_WITH_TOPIC_IDS,
    data_of,
    read_request,
    write_response,
)
from barnabas.api.data.leader_hints import NodeEndpoint
from barnabas.base.ids import ZERO_UUID
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.replication.fetch_targets import EndOfEpoch, FetchData, FetchedPartition, FetchTarget
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.fetch import AbortedTransaction as AbortedTransactionMessage
from barnabas.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from barnabas.wire.messages.fetch import NodeEndpoint as NodeEndpointMessage
from support.kio_messages import read_by_kio, written_by_kio
from support.message_bodies import Body, bodies, damaged_bodies, read_or_none
from support.nodes import APIS
from support.random_structs import random_struct

VERSIONS = APIS[FetchRequest.API_KEY].versions

seeds = st.integers(0, 2**32)


def without_tagged_fields(body: Body) -> bytes:
    """Remove tagged fields, which consumers do not send."""
    request = body.message
    assert isinstance(request, FetchRequest)
    request.cluster_id = None
    request.replica_state = ReplicaState()
    for topic in request.topics:
        for partition in topic.partitions:
            partition.replica_directory_id, partition.high_watermark = ZERO_UUID, 2**63 - 1
    return bytes(encode(request, body.version))


def data_by_kio(version: int, encoded: bytes) -> FetchData:
    """Decode the bytes with kio."""
    request: Any = read_by_kio(FetchRequest, version, encoded)
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    named, forgotten = [], []
    for topic in request.topics:
        name, topic_id = ("", topic.topic_id.bytes) if by_id else (topic.topic, ZERO_UUID)
        for each in topic.partitions:
            target = FetchTarget(
                name,
                topic_id,
                each.partition,
                each.fetch_offset,
                each.partition_max_bytes,
                getattr(each, "current_leader_epoch", -1),
                getattr(each, "last_fetched_epoch", -1),
                by_id,
            )
            named.append(((topic_id if by_id else name, each.partition), target))
    for topic in getattr(request, "forgotten_topics_data", ()):
        key = topic.topic_id.bytes if by_id else topic.topic
        forgotten += [(key, index) for index in topic.partitions]
    return FetchData(
        round(request.max_wait.total_seconds() * 1000),
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        getattr(request, "session_id", 0),
        getattr(request, "session_epoch", -1),
        named,
        forgotten,
        has_replica_id=version < FIRST_VERSION_WITH_REPLICA_STATE and request.replica_id >= 0,
        rack=getattr(request, "rack_id", ""),
    )


@given(bodies(FetchRequest, VERSIONS))
def test_requests_of_consumers_decode_as_with_kio(body: Body) -> None:
    encoded = without_tagged_fields(body)
    assert read_request(encoded, body.version) == data_by_kio(body.version, encoded)


@given(bodies(FetchRequest, VERSIONS))
def test_requests_with_tagged_fields_are_left_to_the_message_class(body: Body) -> None:
    data = read_request(body.encoded, body.version)
    assert isinstance(body.message, FetchRequest)
    if data is not None:
        assert data == data_of(body.message, body.version)
        assert body.encoded == without_tagged_fields(body)


@given(damaged_bodies(FetchRequest, VERSIONS))
def test_damaged_requests_decode_as_with_the_message_class(damaged: tuple[int, bytes]) -> None:
    version, body = damaged
    try_in_place = read_or_none(lambda: (read_request(body, version),))
    if try_in_place == (None,):
        return  # tagged fields
    decoded = read_or_none(lambda: data_of(decode(FetchRequest, version, body), version))
    assert (None if try_in_place is None else try_in_place[0]) == decoded


def random_partition(version: int, rng: random.Random) -> PartitionData:
    """Return a random response partition without the fields that Barnabas never sets."""
    made = random_struct(PartitionData, version, rng)
    known = PartitionData(
        partition_index=made.partition_index,
        error_code=made.error_code,
        high_watermark=made.high_watermark,
        last_stable_offset=made.last_stable_offset,
        log_start_offset=made.log_start_offset,
        aborted_transactions=made.aborted_transactions,
        records=rng.randbytes(rng.choice([0, 1, 130, 5000, COPIED_RECORDS_BYTES_MAX + 1])),
    )
    if version >= 11:
        known.preferred_read_replica = rng.choice([-1, -1, 7])
    if version >= 12 and rng.random() < 0.3:
        known.diverging_epoch = EpochEndOffset(rng.randrange(2**31), rng.randrange(2**63))
    elif version >= 16 and rng.random() < 0.3:
        known.current_leader = LeaderIdAndEpoch(rng.randrange(9), rng.randrange(2**31))
    return known


def fetched(data: PartitionData) -> FetchedPartition:
    """Convert to the broker's representation."""
    aborted = data.aborted_transactions
    diverging, leader = data.diverging_epoch, data.current_leader
    return FetchedPartition(
        data.partition_index,
        data.error_code,
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        None if aborted is None else [_aborted(each) for each in aborted],
        data.records or b"",
        None if diverging == EpochEndOffset() else EndOfEpoch(diverging.epoch, diverging.end_offset),
        None if leader == LeaderIdAndEpoch() else (leader.leader_id, leader.leader_epoch),
        data.preferred_read_replica,
    )


def _aborted(each: AbortedTransactionMessage) -> AbortedTransaction:
    return AbortedTransaction(each.producer_id, each.first_offset, 0, 0)


@given(st.integers(*VERSIONS), seeds)
def test_responses_encode_as_with_kio(version: int, seed: int) -> None:
    rng = random.Random(seed)
    response = FetchResponse()
    if version >= 7:
        response.error_code, response.session_id = rng.randrange(100), rng.randrange(2**31)
    if version >= 16 and rng.random() < 0.3:
        response.node_endpoints = [NodeEndpointMessage(9, "host", 9092, rng.choice([None, "", "rack"]))] * 3
    for _ in range(rng.choice([0, 1, 1, 3])):
        topic = random_struct(FetchableTopicResponse, version, rng)
        topic.partitions = [random_partition(version, rng) for _ in range(rng.choice([0, 1, 3, 130]))]
        response.responses.append(topic)
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    topics = [
        (topic.topic_id if by_id else topic.topic, [fetched(each) for each in topic.partitions])
        for topic in response.responses
    ]
    endpoints = [
        NodeEndpoint(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints
    ]
    body, throttle_position, rest = write_response(
        version, response.session_id, topics, response.error_code, endpoints
    )
    written = b"".join((body, *rest))
    assert throttle_position == 0
    assert written == encode(response, version)
    by_kio = read_by_kio(FetchResponse, version, written)
    assert written_by_kio(FetchResponse, version, by_kio) == written


def test_records_are_copied_up_to_a_limit() -> None:
    small, large = b"s" * 100, memoryview(b"l" * COPIED_RECORDS_BYTES_MAX)
    partitions = [FetchedPartition(index, records=data) for index, data in enumerate((small, large, small))]
    body, _, rest = write_response(17, 0, [(bytes(16), partitions)])
    assert small in body
    assert rest[0] is large
    assert rest[2] is small
