import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetch_messages import FetchLimits
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import ConnectionLost
from barnabas.client.core.retry import Retry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.records.record import Record, encode_batch
from barnabas.wire.schema import Versions
from unit.client.fake_broker import HANG_UP, FakeBroker

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def play(
    scenario: Callable[[FakeBroker, Consumer], Awaitable[None]],
    versions: dict[Any, Versions] | None = None,
    **options: Any,
) -> None:
    """Run a scenario on topic "t": values a0..a4 at times 100, 110, ... in partition 0, b0..b2 in 1."""

    async def run() -> None:
        retry = Retry(first_ms=1, pause_ms_max=1, timeout_ms=50, random=Random(1))
        async with FakeBroker(versions) as broker, ClusterClient(broker.bootstrap, retry=retry) as cluster:
            broker.create("t", 2)
            for number in range(5):
                put(broker, b"a%d" % number, 0, 100 + 10 * number)
            for number in range(3):
                put(broker, b"b%d" % number, 1, 0)
            async with Consumer(cluster, **options) as consumer:
                await asyncio.wait_for(scenario(broker, consumer), 20)

    asyncio.run(run())


def put(broker: FakeBroker, value: bytes, partition: int = 0, timestamp_ms: int = 0) -> None:
    broker.append("t", partition, encode_batch([Record(0, timestamp_ms, None, value)]))


async def rest(consumer: Consumer) -> list[bytes | None]:
    return [record.value async for record in consumer]


def refused(code: ErrorCode) -> Callable[[Any], FetchResponse]:
    def answer(request: Any) -> FetchResponse:
        topic = request.topics[0]
        data = [PartitionData(partition_index=each.partition, error_code=code) for each in topic.partitions]
        named = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=data)
        return FetchResponse(responses=[named])

    return answer


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (EARLIEST, [b"a0", b"a1", b"a2", b"a3", b"a4"]),
        (LATEST, []),
        (3, [b"a3", b"a4"]),
        (OffsetSpec.at(125), [b"a3", b"a4"]),
        (OffsetSpec.at(999), []),
    ],
)
def test_reading_starts_at_the_position_and_stops_at_the_end(
    start: int | OffsetSpec, expected: list[bytes]
) -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: start}, stop_at_end=True)
        assert await rest(consumer) == expected

    play(scenario)


def test_each_of_several_partitions_is_read_in_order() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: EARLIEST, P1: 1}, stop_at_end=True)
        values = await rest(consumer)
        assert [value for value in values if value[:1] == b"a"] == [b"a%d" % number for number in range(5)]
        assert [value for value in values if value[:1] == b"b"] == [b"b1", b"b2"]

    play(scenario)


def test_the_end_is_determined_at_the_start() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: 3}, stop_at_end=True)
        put(broker, b"later")
        assert await rest(consumer) == [b"a3", b"a4"]

    play(scenario)


def test_new_records_are_awaited() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: LATEST})
        polling = asyncio.ensure_future(consumer.poll())
        while not broker.received(FetchRequest):
            await asyncio.sleep(0)
        put(broker, b"new")
        assert [record.value for record in await polling] == [b"new"]
        assert consumer.positions[P0].high_watermark == 6

    play(scenario, limits=FetchLimits(max_wait_ms=5))


def test_a_poll_without_records_ends_at_its_timeout_without_loss() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: LATEST})
        assert await consumer.poll(timeout_ms=20) == []
        put(broker, b"new")
        assert [record.value for record in await consumer.poll()] == [b"new"]

    play(scenario, limits=FetchLimits(max_wait_ms=5))


def test_partial_responses_are_continued() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: EARLIEST}, stop_at_end=True)
        assert len(await rest(consumer)) == 5
        assert len(broker.received(FetchRequest)) == 5

    play(scenario, limits=FetchLimits(partition_max_bytes=1))


def test_a_lost_connection_or_moved_leader_loses_no_record() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: EARLIEST}, stop_at_end=True)
        broker.answer(FetchRequest, lambda _: HANG_UP, refused(ErrorCode.FENCED_LEADER_EPOCH))
        before = len(broker.received(MetadataRequest))
        assert len(await rest(consumer)) == 5
        assert len(broker.received(MetadataRequest)) == before + 2

    play(scenario)


def test_a_leader_that_leaves_while_it_is_asked_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: 3})
        leader = consumer.cluster.leader
        await leader(P0)

        async def last_leader(_: TopicPartition) -> int:
            monkeypatch.setattr(consumer.cluster, "leader", leader)
            return 9  # has left

        monkeypatch.setattr(consumer.cluster, "leader", last_leader)
        assert [record.value for record in await consumer.poll()] == [b"a3", b"a4"]

    play(scenario)


def test_failures_beyond_the_timeout_are_raised() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: EARLIEST})
        broker.answer(FetchRequest, *[lambda _: HANG_UP] * 1_000)
        with pytest.raises(ConnectionLost):
            await consumer.poll()

    play(scenario)


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE])
def test_a_fatal_error_is_raised_immediately(code: ErrorCode) -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: 2})
        broker.answer(FetchRequest, refused(code))
        with pytest.raises(KafkaError, match=f"{code.name}: fetch from offset 2 of partition t-0"):
            await consumer.poll()
        assert len(broker.received(FetchRequest)) == 1

    play(scenario)


def test_a_partition_is_read_from_its_new_leader_while_another_always_has_records() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        for number in range(100):
            put(broker, b"a%d" % number)
        await consumer.assign({P0: EARLIEST, P1: EARLIEST})
        await consumer.poll()
        async with FakeBroker() as second:
            broker.add(2, second)
            broker.leaders["t", 1] = 2
            seen: list[int] = []
            while P1.partition not in seen:
                seen += [record.partition for record in await consumer.poll()]
        assert len(seen) < 10

    play(scenario, limits=FetchLimits(partition_max_bytes=1))


def test_a_fatal_error_of_a_partition_is_raised_although_another_has_records() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        async def fetch(request: Any) -> Any:
            response: Any = await broker.fetch(request)
            for partition in response.responses[0].partitions:
                if partition.partition_index == 1:
                    partition.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return response

        broker.serve(FetchRequest, fetch)
        await consumer.assign({P0: EARLIEST, P1: EARLIEST})
        assert [record.value for record in await consumer.poll()] == [b"a0"]
        with pytest.raises(
            KafkaError, match="TOPIC_AUTHORIZATION_FAILED: fetch from offset 0 of partition t-1"
        ):
            await consumer.poll()
        assert [record.value for record in await consumer.poll()] == [b"a1"]

    play(scenario, limits=FetchLimits(partition_max_bytes=1))


def test_a_partition_without_permission_is_an_error_while_another_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        leader = consumer.cluster.leader

        async def permitted_leader(tp: TopicPartition) -> int:
            if tp == P1:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return await leader(tp)

        await consumer.assign({P0: LATEST, P1: LATEST})
        monkeypatch.setattr(consumer.cluster, "leader", permitted_leader)
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            await consumer.poll()

    play(scenario, limits=FetchLimits(max_wait_ms=60_000))


def test_an_offset_out_of_range_is_an_error_although_another_partition_has_records() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: EARLIEST, P1: 77})
        assert [record.value for record in await consumer.poll()] == [b"a0"]
        with pytest.raises(KafkaError, match="offset 77 is outside partition t-1"):
            await consumer.poll()

    play(scenario, limits=FetchLimits(partition_max_bytes=1))


def test_an_offset_out_of_range_is_an_error_with_the_range() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: 77})
        with pytest.raises(KafkaError, match="offset 77 is outside partition t-0, which has offsets 0 to 5"):
            await consumer.poll()

    play(scenario)


def test_an_offset_out_of_range_can_be_reset() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: 77, P1: EARLIEST})
        seen: list[bytes | None] = []
        while len(seen) < 8:
            seen += [record.value for record in await consumer.poll()]
        assert sorted(seen) == [b"a0", b"a1", b"a2", b"a3", b"a4", b"b0", b"b1", b"b2"]

    play(scenario, out_of_range=EARLIEST)


def test_an_unknown_partition_cannot_be_assigned() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        with pytest.raises(KafkaError, match="topic 't' has 2 partitions, and none with index 5"):
            await consumer.assign({TopicPartition("t", 5): EARLIEST})

    play(scenario)


def test_a_new_assignment_replaces_the_old_one() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P0: EARLIEST})
        await consumer.poll()
        await consumer.assign({P1: EARLIEST}, stop_at_end=True)
        assert await rest(consumer) == [b"b0", b"b1", b"b2"]

    play(scenario)


def test_brokers_without_topic_ids_are_requested_by_name() -> None:
    async def scenario(broker: FakeBroker, consumer: Consumer) -> None:
        await consumer.assign({P1: EARLIEST}, stop_at_end=True)
        assert len(await rest(consumer)) == 3
        assert broker.received(FetchRequest)[0].topics[0].topic == "t"

    play(scenario, {MetadataRequest: Versions(0, 9)})
