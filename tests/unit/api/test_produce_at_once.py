"""The short way of Produce does what the long one does: same answer, same log, byte for byte."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.acls import decide_create_acls, decide_delete_acls
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.topics import PARTITION_STATES, PartitionState, Topic, partition_key
from barnabas.wire.acls import AclFilter, AclOperation
from barnabas.wire.framing import FrameReader
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.records.compression import Compression
from support.acls import ALICE, AUTHORIZED, allow
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, frame_of, response_of, running_node
from support.short_ways import Pair, split

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
    """The topics of `TOPICS` with two partitions each; "elsewhere" is led by a broker that is not here."""
    await node.create(*(new_topic(name, 2, configs=configs) for name, configs in TOPICS.items()))
    key = partition_key(node.topic_id("elsewhere"), 0)
    change = PARTITION_STATES.put(key, PartitionState(2, 1, (2,)))
    await node.node.metadata.reached(await node.store.commit({}, (change,)))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), prepare)
    yield made
    made.close()


def random_batch(dice: random.Random) -> bytes:
    values = [dice.randbytes(dice.randrange(60)) for _ in range(dice.randrange(1, 4))]
    options: dict[str, Any] = {}
    kind = dice.random()
    if kind < 0.3:
        options = {
            "producer_id": dice.randrange(3),
            "producer_epoch": int(dice.random() < 0.05),
            "base_sequence": dice.randrange(5),
        }
    elif kind < 0.35:
        options = {"transactional": True, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    elif kind < 0.4:
        options = {"control": True}
    elif kind < 0.5:
        options = {"compression": Compression.LZ4}
    return bytes(batch(*values, key=dice.choice([None, b"k"]), **options))


def random_records(dice: random.Random) -> bytes | None:
    """Mostly one good batch."""
    records = random_batch(dice)
    kind = dice.random()
    if kind < 0.7:
        return records
    at = dice.randrange(len(records))
    return dice.choice(
        [
            None,
            b"",
            records[:at],
            records[:at] + bytes([records[at] ^ 1 << dice.randrange(8)]) + records[at + 1 :],
            records + random_batch(dice),
            dice.randbytes(70),
        ]
    )


def random_topic(dice: random.Random, partitions_count: int) -> TopicProduceData:
    name = "plain" if dice.random() < 0.5 else dice.choice([*TOPICS, "gone", ""])
    indexes = [dice.choice([0, 0, 0, 1, 1, 2, -1]) for _ in range(partitions_count)]
    data = [PartitionProduceData(index=index, records=random_records(dice)) for index in indexes]
    return TopicProduceData(name=name, partition_data=data)


def random_request(dice: random.Random) -> ProduceRequest:
    """Mostly of the form that the short way is for."""
    if dice.random() < 0.7:
        return ProduceRequest(acks=dice.choice([1, -1]), timeout_ms=9, topic_data=[random_topic(dice, 1)])
    return ProduceRequest(
        transactional_id=dice.choice([None, None, "tx"]),
        acks=dice.randrange(-2, 3),
        timeout_ms=dice.choice([0, 30_000]),
        topic_data=[random_topic(dice, dice.randrange(3)) for _ in range(dice.randrange(3))],
    )


def random_frame(dice: random.Random, ids: Mapping[str, Topic]) -> bytes:
    """A request in its frame, sometimes with a byte too many or too few."""
    request = random_request(dice)
    for topic in request.topic_data:
        topic.topic_id = ids[topic.name].topic_id if topic.name in ids else b"?" * 16
    frame = frame_of(
        request,
        max(dice.randrange(3, 14), dice.randrange(3, 14)),
        client_id=dice.choice([None, "", "client"]),
    )
    if dice.random() < 0.9:
        return frame
    return frame[: len(frame) - dice.randrange(40)] + dice.choice([b"", b"\0", b"\0\0\0", b"x"])


def random_turn(dice: random.Random, ids: Mapping[str, Topic]) -> list[bytes]:
    """Frames that arrive together: mostly alike, but for their records."""
    frames = [random_frame(dice, ids)]
    while dice.random() < 0.8:
        if dice.random() < 0.2:
            frames.append(random_frame(dice, ids))
            continue
        request = ProduceRequest(acks=-1, timeout_ms=9, topic_data=[random_topic(dice, 1)])
        request.topic_data[0].name = "plain"
        request.topic_data[0].partition_data[0].index = 0
        frames.append(frame_of(request, 12, correlation_id=dice.randrange(2**31)))
    return frames


@pytest.mark.parametrize("seed", range(4))
def test_any_requests_have_the_same_outcome_by_either_way(pair: Pair, seed: int) -> None:
    dice = random.Random(seed)
    taken_count = pair.taken_count
    for _ in range(200):
        frames = random_turn(dice, pair.short.node.image.topics)
        short, long = pair.outcomes_together(*frames)
        assert short == long, frames
        for one, other in zip(pair.short.node.replicas, pair.long.node.replicas, strict=True):
            assert one.log.log_end_offset == other.log.log_end_offset
            assert one.log.high_watermark == other.log.high_watermark
    for one, other in zip(pair.short.node.replicas, pair.long.node.replicas, strict=True):
        assert one.log.active_producers == other.log.active_producers
    assert pair.taken_count - taken_count > 200, "the short way has hardly been taken: this proves little"
    assert pair.longest_run_count > 3


def test_the_logs_that_both_ways_wrote_are_the_same(pair: Pair) -> None:
    short, long = pair.files()
    assert short == long
    assert any(content for name, content in short.items() if name.startswith("plain-0"))


def everyday(topic: str = "plain", index: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=bytes(batch(b"value")))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=1500, topic_data=topics)


@pytest.mark.parametrize("version", range(9, 14))
@pytest.mark.parametrize("acks", [1, -1])
def test_the_everyday_request_takes_the_short_way(pair: Pair, version: int, acks: int) -> None:
    request = everyday(acks=acks)
    request.topic_data[0].topic_id = pair.short.topic_id("plain")
    taken_count = pair.taken_count
    short, long = pair.outcomes(frame_of(request, version))
    assert short == long
    assert pair.taken_count == taken_count + 1
    assert isinstance(short, bytes)
    answer = response_of(ProduceResponse, version, short).responses[0].partition_responses[0]
    assert answer.error_code == 0
    assert answer.base_offset == pair.short.partition("plain").log.log_end_offset - 1


@pytest.mark.parametrize(
    "request_",
    [
        everyday(acks=0),
        everyday("gone"),
        everyday("__consumer_offsets"),
        everyday("elsewhere"),
        everyday(index=2),
    ],
)
def test_what_must_be_refused_or_unanswered_takes_the_long_way(pair: Pair, request_: ProduceRequest) -> None:
    taken_count = pair.taken_count
    short, long = pair.outcomes(frame_of(request_, 12))
    assert short == long
    assert pair.taken_count == taken_count


@pytest.mark.parametrize("version", range(3, 9))
def test_older_versions_take_the_long_way(pair: Pair, version: int) -> None:
    taken_count = pair.taken_count
    short, long = pair.outcomes(frame_of(everyday(), version))
    assert short == long
    assert pair.taken_count == taken_count


@on_loop
async def test_a_topic_that_is_flushed_at_each_append_takes_the_long_way(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", configs={"flush.messages": "1"}))
        frame = frame_of(everyday("t"), 12)
        assert node.send_at_once(frame) is None
        assert node.partition("t").log.log_end_offset == 0
        assert await node.send_the_long_way(frame) is not None
        assert node.node.flusher.flushes_count == 1


@on_loop
async def test_the_short_way_is_for_those_who_may_write_and_no_longer_than_they_may(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        await node.create(new_topic("t"))
        node.connection.principal = ALICE
        frame = frame_of(everyday("t"), 12)
        assert node.send_at_once(frame) is None
        permission = allow(AclOperation.WRITE)
        await node.node.metadata.write(lambda image: decide_create_acls(image.acls, [permission]))
        await node.send_the_long_way(frame)  # as the first batch of a log always goes
        assert node.send_at_once(frame) is not None
        node.connection.principal = "User:bob"
        assert node.send_at_once(frame) is None
        node.connection.principal = ALICE
        assert node.send_at_once(frame) is not None
        await node.node.metadata.write(lambda image: decide_delete_acls(image.acls, [AclFilter()]))
        assert node.send_at_once(frame) is None
        assert node.partition("t").log.log_end_offset == 3


def produced(records: bytes, topic: str = "t") -> bytes:
    data = PartitionProduceData(index=0, records=records)
    return frame_of(
        ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=[data])]), 12
    )


def sequence(base_sequence: int, *values: bytes) -> bytes:
    """A frame with a batch of producer 5."""
    records = batch(*values, producer_id=5, producer_epoch=0, base_sequence=base_sequence)
    return produced(bytes(records))


def offsets_of(answers: bytes | None) -> list[int]:
    assert answers is not None
    partitions = [
        response_of(ProduceResponse, 12, bytes(answer)).responses[0].partition_responses[0]
        for answer in split(answers)
        if isinstance(answer, bytes)
    ]
    assert not any(partition.error_code for partition in partitions)
    return [partition.base_offset for partition in partitions]


@on_loop
async def test_the_sequences_of_a_producer_go_on_from_request_to_request(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        await node.send(sequence(0, b"a", b"b"))
        assert offsets_of(
            node.send_at_once(sequence(2, b"c"), sequence(3, b"d", b"e"), sequence(5, b"f"))
        ) == [2, 3, 5]
        assert node.send_at_once(sequence(7, b"h")) is None, "a gap"
        assert node.send_at_once(sequence(2, b"c")) is None, "a duplicate"
        assert node.partition("t").log.log_end_offset == 6
        assert node.partition("t").log.active_producers[0].last_sequence == 5


@on_loop
async def test_a_duplicate_is_answered_with_its_first_offset(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        answers = [await node.send(sequence(0, b"a", b"b")) for _ in range(3)]
        assert [offsets_of(answer) for answer in answers] == [[0]] * 3
        assert node.partition("t").log.log_end_offset == 2


@on_loop
async def test_what_no_longer_fits_into_the_segment_begins_a_new_one(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", configs={"segment.bytes": "1048576"}))
        frame = produced(bytes(batch(b"x" * 400_000)))
        for _ in range(5):
            assert await node.send(frame) is not None
        assert node.partition("t").log.statistics()["segments_count"] == 3


@on_loop
async def test_a_topic_made_anew_is_not_taken_for_the_one_that_was(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        frame = produced(bytes(batch(b"value")))
        assert [offsets_of(await node.send(frame)) for _ in range(2)] == [[0], [1]]
        old = node.partition("t")
        await node.node.metadata.write(lambda image: decide_delete(image, [TopicToDelete("t")]))
        await node.create(new_topic("t"))
        assert offsets_of(await node.send(frame)) == [0]
        assert old.log.log_end_offset == 2


@on_loop
async def test_a_frame_larger_than_is_allowed_is_not_taken(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        frame = produced(bytes(batch(b"value")))
        await node.send(frame)
        data = bytearray(len(frame).to_bytes(4, "big") + frame)
        reader = FrameReader(data, len(frame) - 1)
        reader.received(len(data))
        assert node.dispatcher.answer_at_once(reader, node.short_ways) == (b"", 0)
