"""The short way of Produce does what the long one does: same answer, same log, byte for byte."""

import asyncio
import random
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.dispatch import Refused
from barnabas.metadata.topics import PARTITION_STATES, PartitionState, Topic, partition_key
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.records.compression import Compression
from support.batches import batch
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
    """The topics of `TOPICS` with two partitions each; "elsewhere" is led by a broker that is not here."""
    await node.create(*(new_topic(name, 2, configs=configs) for name, configs in TOPICS.items()))
    key = partition_key(node.topic_id("elsewhere"), 0)
    change = PARTITION_STATES.put(key, PartitionState(2, 1, (2,)))
    await node.node.metadata.reached(await node.store.commit({}, (change,)))


class Pair:
    """Two nodes alike: one may take the short way, the other never does."""

    def __init__(self, directory: Path) -> None:
        self.runner = asyncio.Runner()
        self.directories = [directory / "short", directory / "long"]
        self.taken_count = 0
        self.stack = AsyncExitStack()
        self.runner.run(self._start())

    async def _start(self) -> None:
        for directory in self.directories:
            directory.mkdir()
        self.short, self.long = [
            await self.stack.enter_async_context(running_node(directory)) for directory in self.directories
        ]
        for node in (self.short, self.long):
            await prepare(node)

    def close(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    def outcomes(self, frame: bytes) -> tuple[object, object]:
        """What becomes of a frame on either node."""
        at_once = self.short.dispatcher.answer_at_once(memoryview(bytearray(frame)))
        short = at_once
        if at_once is None:
            short = self.runner.run(_the_long_way(self.short, frame))
        else:
            self.taken_count += 1
        return short, self.runner.run(_the_long_way(self.long, frame))

    def files(self) -> list[dict[str, bytes]]:
        """What stands in the log and index files of either node."""
        return [
            {
                str(path.relative_to(directory)): path.read_bytes()
                for path in directory.glob("*/*")
                if path.suffix in (".log", ".index", ".timeindex")
            }
            for directory in self.directories
        ]


async def _the_long_way(node: RunningNode, frame: bytes) -> object:
    try:
        return await node.send_the_long_way(frame)
    except Refused as error:
        return str(error)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"))
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


@pytest.mark.parametrize("seed", range(4))
def test_any_request_has_the_same_outcome_by_either_way(pair: Pair, seed: int) -> None:
    dice = random.Random(seed)
    taken_count = pair.taken_count
    for _ in range(400):
        frame = random_frame(dice, pair.short.node.image.topics)
        short, long = pair.outcomes(frame)
        assert short == long, frame
        for one, other in zip(pair.short.node.replicas, pair.long.node.replicas, strict=True):
            assert one.log.log_end_offset == other.log.log_end_offset
    for one, other in zip(pair.short.node.replicas, pair.long.node.replicas, strict=True):
        assert one.log.active_producers == other.log.active_producers
    assert pair.taken_count - taken_count > 40, "the short way has hardly been taken: this proves little"


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
        assert node.dispatcher.answer_at_once(memoryview(bytearray(frame))) is None
        assert node.partition("t").log.log_end_offset == 0
        assert await node.send_the_long_way(frame) is not None
        assert node.node.flusher.flushes_count == 1


@on_loop
async def test_a_duplicate_is_answered_with_its_first_offset_by_the_short_way_too(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        records = bytes(batch(b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=0))
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        frame = frame_of(request, 12)
        answers = [node.dispatcher.answer_at_once(memoryview(bytearray(frame))) for _ in range(3)]
        assert node.partition("t").log.log_end_offset == 2
        for answer in answers:
            assert answer is not None
            found = response_of(ProduceResponse, 12, answer).responses[0].partition_responses[0]
            assert (found.error_code, found.base_offset) == (0, 0)
