"""Fetches on the fast path give the same responses and sessions as without it."""

import asyncio
import random
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from barnabas.wire.records.control import EndTransactionMarker
from support.acls import ALICE, AUTHORIZED
from support.batches import batch, values_of
from support.fast_paths import Pair
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, frame_of, response_of, running_node

TOPICS = ("t", "u", "long" * 40)


async def prepare(node: RunningNode) -> None:
    """Create topics of two partitions; one has a large batch and an aborted transaction, one a later log start."""
    await node.create(*(new_topic(name, 2) for name in TOPICS))
    for name in TOPICS:
        partition = node.partition(name)
        partition.append_as_leader(batch(b"a" * 20_000), 1)
        partition.append_as_leader(batch(b"b"), 1)
        verification = partition.log.producers.start_verification(7, 0, 0, bumps_epochs=False)
        options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        partition.append_as_leader(batch(b"c", **options), 1, verification)
        partition.append_transaction_marker(EndTransactionMarker(7, 0, 0, False, node.clock.wall_ms()), 0)
        assert partition.log.log_end_offset == 4
    partition = node.partition("t", 1)
    for value in (b"d", b"e"):
        partition.append_as_leader(batch(value), 1)
    partition.delete_records(1)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"), prepare)
    yield made
    made.close()


class Client:
    """Builds random requests, and remembers the last response's session."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pair = pair
        self.version = self.rng.randrange(4, 19)
        self.session_id, self.epoch = 0, 0

    def frame(self) -> bytes:
        rng = self.rng
        if rng.random() < 0.1:
            self.version, self.session_id, self.epoch = rng.randrange(4, 19), 0, 0
        request = FetchRequest(
            max_wait_ms=rng.choice([0, 0, 1]),
            min_bytes=rng.choice([0, 1, 1, 100_000]),
            max_bytes=rng.choice([1, 100, 1 << 20]),
            isolation_level=rng.choice([0, 0, 1, 1, 2]),
            topics=[self._topic() for _ in range(rng.randrange(3))],
            rack_id=rng.choice(["", "rack"]),
        )
        if self.version >= 7:
            is_odd = rng.random() < 0.1
            request.session_id = 5 if is_odd else self.session_id
            request.session_epoch = rng.choice([-1, 0, 3]) if is_odd else self.epoch
            request.forgotten_topics_data = [
                ForgottenTopic(name, self._topic_id(name), [0]) for name in TOPICS if rng.random() < 0.1
            ]
        if rng.random() < 0.1:
            request.replica_id, request.replica_state = (
                (2, ReplicaState()) if self.version < 15 else (-1, ReplicaState(2))
            )
        frame = frame_of(request, self.version)
        if rng.random() < 0.85:
            return frame
        return frame[: len(frame) - rng.randrange(30)] + rng.choice([b"", b"\0", b"\0\0\0", b"x"])

    def _topic(self) -> FetchTopic:
        rng = self.rng
        name = rng.choice([*TOPICS, *TOPICS, "gone", ""])
        partitions = [
            FetchPartition(
                partition=rng.choice([0, 0, 0, 1, 1, 2, -1]),
                fetch_offset=rng.choice([0, 1, 2, 3, 4, 4, 4, 5, -1]),
                partition_max_bytes=rng.choice([1, 30_000]),
                current_leader_epoch=rng.choice([-1, -1, 0, 0, 1]) if self.version >= 9 else -1,
                last_fetched_epoch=rng.choice([-1, -1, -1, 0]) if self.version >= 12 else -1,
            )
            for _ in range(rng.randrange(4))
        ]
        return FetchTopic(name, self._topic_id(name), partitions)

    def _topic_id(self, name: str) -> bytes:
        known = self.pair.fast.broker.image.topics.get(name)
        return (ZERO_UUID if name == "" else b"?" * 16) if known is None else known.topic_id

    def follow(self, outcome: Any) -> int:
        """Remember the session; return the number of topics in the response."""
        if outcome[0] == "refused":
            return 0
        response = response_of(FetchResponse, self.version, outcome[0])
        self.epoch = self.epoch + 1 if response.session_id and response.session_id == self.session_id else 1
        self.session_id = response.session_id
        if not self.session_id:
            self.epoch = 0
        return len(response.responses)


@pytest.mark.parametrize("seed", range(6))
def test_any_request_has_the_same_result_on_both_paths(pair: Pair, seed: int) -> None:
    client = Client(pair, seed)
    answered_count, topics_count = pair.answered_in_turn_count, 0
    for _ in range(250):
        frame = client.frame()
        fast, decoded = pair.outcomes(frame)
        assert fast == decoded, (client.version, frame)
        topics_count += client.follow(fast)
    assert pair.fast.broker.fetch_sessions.statistics() == pair.decoding.broker.fetch_sessions.statistics()
    assert pair.answered_in_turn_count - answered_count > 100
    assert topics_count > 50


def fetch_frame(node: RunningNode, *indexes: int, offset: int = 0, **fields: Any) -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20) for index in indexes
    ]
    topics = [FetchTopic("t", node.topic_id("t"), partitions)]
    return FetchRequest(**{"max_wait_ms": 60_000, "min_bytes": 1, "topics": topics, **fields})


@pytest.mark.parametrize("version", range(4, 19))
def test_available_records_are_returned_within_the_requests_turn(pair: Pair, version: int) -> None:
    answered_count = pair.answered_in_turn_count
    fast, decoded = pair.outcomes(frame_of(fetch_frame(pair.fast, 0, 1, offset=1), version))
    assert fast == decoded
    assert pair.answered_in_turn_count == answered_count + 1
    assert isinstance(fast, tuple)
    (topic,) = response_of(FetchResponse, version, fast[0]).responses
    assert [values_of(each.records)[:2] for each in topic.partitions] == [[b"b", b"c"], [b"e"]]


@on_loop
async def test_a_delayed_fetch_is_completed_by_an_append(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        _, answer = node.begin(frame_of(fetch_frame(node, 0), 17))
        assert isinstance(answer, Coroutine)
        asking = asyncio.create_task(answer)
        await asyncio.sleep(0)
        assert not asking.done()
        node.partition("t").append_as_leader(batch(b"value"), 1)
        response = response_of(FetchResponse, 17, b"".join(await asking or []))
        assert values_of(response.responses[0].partitions[0].records) == [b"value"]


@on_loop
async def test_unauthorized_topics_fail_immediately(tmp_path: Path) -> None:
    async with running_node(tmp_path, **AUTHORIZED) as node:
        await node.create(new_topic("t"))
        node.connection.principal = ALICE
        _, answer = node.begin(frame_of(fetch_frame(node, 0), 17))
        assert isinstance(answer, list)
        response = response_of(FetchResponse, 17, b"".join(answer))
        assert response.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
