"""Produce on the fast path gives the same responses and logs, byte for byte, as without it."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.data.produce import RECORD_ERRORS_MAX
from barnabas.log.record_validation import RECORD_ERRORS_COUNT_MAX
from barnabas.metadata.acls import decide_create_acls
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topics import PARTITION_STATES, PartitionRegistration, TopicImage, partition_key
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.records.compression import Compression
from support.acls import ALICE, AUTHORIZED, allow
from support.batches import batch
from support.fast_paths import Pair
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, frame_of, response_of, running_node

LONG_NAME = "long" * 32
TOPICS = {
    "plain": {},
    "tiny": {"max.message.bytes": "100"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "keyed": {"cleanup.policy": "compact"},
    "packed": {"compression.type": "lz4"},
    "elsewhere": {},
    "__consumer_offsets": {},
    "n" * 126: {},
    LONG_NAME: {},
}


async def prepare(node: RunningNode) -> None:
    """Create `TOPICS` with two partitions each; "elsewhere" is led by a broker that does not exist."""
    await node.create(*(new_topic(name, 2, configs=configs) for name, configs in TOPICS.items()))
    key = partition_key(node.topic_id("elsewhere"), 0)
    change = PARTITION_STATES.put(key, PartitionRegistration(2, 1, (2,)))
    await node.broker.metadata.wait_for_revision(await node.store.commit({}, (change,)))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), prepare)
    yield made
    made.close()


def random_batch(rng: random.Random) -> bytes:
    values = [rng.randbytes(rng.randrange(60)) for _ in range(rng.randrange(1, 4))]
    options: dict[str, Any] = {}
    kind = rng.random()
    if kind < 0.3:
        options = {
            "producer_id": rng.randrange(3),
            "producer_epoch": int(rng.random() < 0.05),
            "base_sequence": rng.randrange(5),
        }
    elif kind < 0.35:
        options = {"transactional": True, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    elif kind < 0.4:
        options = {"control": True}
    elif kind < 0.5:
        options = {"compression": Compression.LZ4}
    return bytes(batch(*values, key=rng.choice([None, b"k"]), **options))


def random_records(rng: random.Random) -> bytes | None:
    """Return a valid batch in most cases."""
    records = random_batch(rng)
    kind = rng.random()
    if kind < 0.7:
        return records
    at = rng.randrange(len(records))
    return rng.choice(
        [
            None,
            b"",
            records[:at],
            records[:at] + bytes([records[at] ^ 1 << rng.randrange(8)]) + records[at + 1 :],
            records + random_batch(rng),
            rng.randbytes(70),
        ]
    )


def random_topic(rng: random.Random, partitions_count: int) -> TopicProduceData:
    name = "plain" if rng.random() < 0.5 else rng.choice([*TOPICS, "gone", ""])
    indexes = [rng.choice([0, 0, 0, 1, 1, 2, -1]) for _ in range(partitions_count)]
    data = [PartitionProduceData(index=index, records=random_records(rng)) for index in indexes]
    return TopicProduceData(name=name, partition_data=data)


def random_request(rng: random.Random) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=rng.choice([None, None, "tx"]),
        acks=rng.choice([1, -1, -1, 0, 2]),
        timeout_ms=rng.choice([0, 30_000]),
        topic_data=[random_topic(rng, rng.randrange(3)) for _ in range(rng.randrange(3))],
    )


def random_frame(rng: random.Random, ids: Mapping[str, TopicImage]) -> bytes:
    """Encode a request as a frame, sometimes with a missing or additional byte."""
    request = random_request(rng)
    for topic in request.topic_data:
        topic.topic_id = ids[topic.name].topic_id if topic.name in ids else b"?" * 16
    frame = frame_of(
        request,
        rng.randrange(3, 14),
        client_id=rng.choice([None, "", "client"]),
    )
    if rng.random() < 0.9:
        return frame
    return frame[: len(frame) - rng.randrange(40)] + rng.choice([b"", b"\0", b"\0\0\0", b"x"])


@pytest.mark.parametrize("seed", range(6))
def test_any_request_has_the_same_result_on_both_paths(pair: Pair, seed: int) -> None:
    rng = random.Random(seed)
    answered_count = pair.answered_in_turn_count
    for _ in range(400):
        frame = random_frame(rng, pair.fast.broker.image.topics)
        fast, decoded = pair.outcomes(frame)
        assert fast == decoded, frame
    for one, other in zip(pair.fast.broker.replicas, pair.decoding.broker.replicas, strict=True):
        assert one.log.log_end_offset == other.log.log_end_offset
        assert one.log.high_watermark == other.log.high_watermark
        assert one.log.producers.states.active == other.log.producers.states.active
    assert pair.answered_in_turn_count - answered_count > 200


def test_both_paths_write_the_same_logs(pair: Pair) -> None:
    fast, decoding = pair.files()
    assert fast == decoding
    assert any(content for name, content in fast.items() if name.startswith("plain-0"))


def test_the_record_errors_of_a_response_are_limited(pair: Pair) -> None:
    records = bytes(batch(*[b"v"] * RECORD_ERRORS_COUNT_MAX, compression=Compression.ZSTD))
    batches_count = RECORD_ERRORS_MAX // RECORD_ERRORS_COUNT_MAX
    few = bytes(batch(b"1", b"2"))
    data = [PartitionProduceData(index=0, records=each) for each in (few, *[records] * batches_count, few)]
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="keyed", partition_data=data)])
    fast, decoded = pair.outcomes(frame_of(request, 12))
    assert fast == decoded
    assert isinstance(fast, tuple)
    answers = response_of(ProduceResponse, 12, fast[0]).responses[0].partition_responses
    assert [each.error_code for each in answers] == [ErrorCode.INVALID_RECORD] * len(data)
    assert all(each.error_message for each in answers)
    full = [RECORD_ERRORS_COUNT_MAX] * (batches_count - 1)
    expected = [2, *full, RECORD_ERRORS_COUNT_MAX - 2, 0]
    assert [len(each.record_errors) for each in answers] == expected


def everyday(topic: str = "plain", *indexes: int, acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=bytes(batch(b"value"))) for index in indexes or (0,)]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=1500, topic_data=topics)


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [1, -1])
def test_a_request_for_several_partitions_completes_within_its_turn(
    pair: Pair, version: int, acks: int
) -> None:
    request = everyday("plain", 0, 1, acks=acks)
    request.topic_data[0].topic_id = pair.fast.topic_id("plain")
    answered_count = pair.answered_in_turn_count
    fast, decoded = pair.outcomes(frame_of(request, version))
    assert fast == decoded
    assert pair.answered_in_turn_count == answered_count + 1
    assert isinstance(fast, tuple)
    answers = response_of(ProduceResponse, version, fast[0]).responses[0].partition_responses
    assert [(each.index, each.error_code) for each in answers] == [(0, 0), (1, 0)]
    assert answers[0].base_offset == pair.fast.partition("plain").log.log_end_offset - 1


@on_loop
async def test_permissions_are_checked_for_each_request(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        await node.create(new_topic("plain"))
        node.connection.principal = ALICE
        denied = await node.ask(everyday(), 9)
        assert denied.responses[0].partition_responses[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await node.broker.metadata.write(
            lambda image: decide_create_acls(image.acls, [allow(AclOperation.WRITE, name="plain")])
        )
        allowed = await node.ask(everyday(), 9)
        assert allowed.responses[0].partition_responses[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_truncated_request_is_rejected_at_any_length(pair: Pair, version: int) -> None:
    request = everyday("plain", 0, 1)
    request.topic_data[0].topic_id = pair.fast.topic_id("plain")
    frame = frame_of(request, version)
    end_offset = pair.fast.partition("plain").log.log_end_offset
    for size in range(len(frame)):
        fast, decoded = pair.outcomes(frame[:size])
        assert fast == decoded == ("refused", None)
    assert pair.fast.partition("plain").log.log_end_offset == end_offset


def produced(records: bytes, topic: str = "t") -> bytes:
    data = PartitionProduceData(index=0, records=records)
    return frame_of(
        ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=[data])]), 12
    )


def sequence(base_sequence: int, *values: bytes) -> bytes:
    """Build a frame with a batch of producer 5."""
    records = batch(*values, producer_id=5, producer_epoch=0, base_sequence=base_sequence)
    return produced(bytes(records))


async def produced_offset(node: RunningNode, frame: bytes) -> int:
    """Return the base offset, or the negated error code."""
    answer = await node.send(frame)
    assert answer is not None
    partition = response_of(ProduceResponse, 12, answer).responses[0].partition_responses[0]
    return -partition.error_code if partition.error_code else partition.base_offset


@on_loop
async def test_a_producers_sequences_continue_across_requests(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        frames = [sequence(0, b"a", b"b"), sequence(2, b"c"), sequence(3, b"d", b"e"), sequence(5, b"f")]
        assert [await produced_offset(node, frame) for frame in frames] == [0, 2, 3, 5]
        assert await produced_offset(node, sequence(7, b"h")) == -ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await produced_offset(node, sequence(2, b"c")) == 2, "a duplicate"
        assert node.partition("t").log.log_end_offset == 6
        assert node.partition("t").log.producers.states.active[0].last_sequence == 5


@on_loop
async def test_a_duplicate_gets_its_first_offset(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        assert [await produced_offset(node, sequence(0, b"a", b"b")) for _ in range(3)] == [0] * 3
        assert node.partition("t").log.log_end_offset == 2


@on_loop
async def test_a_batch_that_does_not_fit_rolls_the_segment(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", configs={"segment.bytes": "1048576"}))
        frame = produced(bytes(batch(b"x" * 400_000)))
        for _ in range(5):
            assert await node.send(frame) is not None
        assert node.partition("t").log.statistics()["segments_count"] == 3


@on_loop
async def test_a_recreated_topic_is_a_different_topic(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        frame = produced(bytes(batch(b"value")))
        assert [await produced_offset(node, frame) for _ in range(2)] == [0, 1]
        old = node.partition("t")
        await node.broker.metadata.write(lambda image: decide_delete(image, [TopicToDelete("t")]))
        await node.create(new_topic("t"))
        assert await produced_offset(node, frame) == 0
        assert old.log.log_end_offset == 2
