import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import ConnectionLost
from barnabas.client.producer.accumulator import RecordMetadata
from barnabas.client.producer.partitioner import partition_for_key
from barnabas.client.producer.producer import Producer
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    ProduceRequest,
    ProduceResponse,
)
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import decode_all
from barnabas.wire.schema import Versions
from unit.client.fake_broker import HANG_UP, FakeBroker
from unit.client.producer.scenarios import headers, play, refused, watched


def test_a_record_is_delivered_with_key_headers_and_timestamp() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster)) as producer:
            delivery = await producer.send_and_wait("t", b"v", b"k", headers=(("h", b"1"),), timestamp_ms=77)
        assert delivery == RecordMetadata(TopicPartition("t", 0), 0, 77)
        assert broker.records("t") == [(0, 77, b"k", b"v", (("h", b"1"),))]

    play(scenario)


def test_records_sent_together_share_a_batch_with_successive_offsets() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster, linger_ms=60_000)) as producer:
            waiters = [await producer.send("t", b"%d" % number) for number in range(100)]
            await producer.flush()
            assert [waiter.result().offset for waiter in waiters] == list(range(100))
        assert len(broker.received(ProduceRequest)) == 1
        assert [record.value for record in broker.records("t")] == [b"%d" % number for number in range(100)]

    play(scenario)


def test_keys_determine_the_partition_unless_it_is_explicit() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster, topic_timeout_ms=10)) as producer:
            by_key = await producer.send_and_wait("t", b"v", b"key")
            explicit = await producer.send_and_wait("t", b"v", b"key", partition=3)
            with pytest.raises(KafkaError, match="has 5 partitions, and none with index 5"):
                await producer.send("t", b"v", partition=5)
        assert by_key.tp.partition == partition_for_key(b"key", 5)
        assert explicit.tp.partition == 3

    play(scenario, partitions=5)


def test_a_partition_that_the_metadata_lacks_is_awaited() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster)) as producer:
            await producer.send_and_wait("t", b"v", partition=0)
            sending = asyncio.ensure_future(producer.send_and_wait("t", b"v", partition=1))
            while len(broker.received(MetadataRequest)) < 3:
                await asyncio.sleep(0)
            broker.create("t", 2)
            assert (await sending).tp.partition == 1

    play(scenario)


def test_sequences_continue_across_batches_of_one_producer_id() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster)) as producer:
            for _ in range(3):
                await producer.send_and_wait("t", b"v")
        assert [header.base_sequence for header in headers(broker)] == [0, 1, 2]
        assert len({header.producer_id for header in headers(broker)}) == 1
        assert len(broker.received(InitProducerIdRequest)) == 1

    play(scenario)


def test_a_lost_response_is_retried_with_the_same_bytes_in_order() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, lambda _: HANG_UP, refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        async with watched(Producer(cluster, batch_size_bytes=100)) as producer:
            for number in range(10):
                await producer.send("t", b"%d" % number)
        assert [record.value for record in broker.records("t")] == [b"%d" % number for number in range(10)]
        first, second, third, *_ = headers(broker)
        assert first == second == third
        assert len(broker.received(MetadataRequest)) > 2

    play(scenario)


def test_a_fatal_error_reaches_its_future_and_its_sequence_is_reused() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, refused(ErrorCode.INVALID_TIMESTAMP, error_message="too old"))
        async with watched(Producer(cluster)) as producer:
            with pytest.raises(KafkaError, match="INVALID_TIMESTAMP: too old"):
                await producer.send_and_wait("t", b"v")
            assert (await producer.send_and_wait("t", b"w")).offset == 0
        assert [header.base_sequence for header in headers(broker)] == [0, 0]
        assert len(broker.received(InitProducerIdRequest)) == 1

    play(scenario)


def test_an_error_after_an_attempt_with_unknown_result_resets_the_producer_id() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, lambda _: HANG_UP, refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
        async with watched(Producer(cluster)) as producer:
            with pytest.raises(KafkaError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
                await producer.send_and_wait("t", b"v")
            await producer.send_and_wait("t", b"w")
        old, _, new = headers(broker)
        assert new.producer_id != old.producer_id
        assert new.base_sequence == 0

    play(scenario)


@pytest.mark.parametrize(
    "answer",
    [lambda _: HANG_UP, refused(ErrorCode.NOT_LEADER_OR_FOLLOWER), refused(ErrorCode.UNKNOWN_SERVER_ERROR)],
)
def test_a_batch_that_expires_after_one_attempt_with_unknown_result_resets_the_producer_id(
    answer: Callable[[Any], Any],
) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, answer)
        async with watched(Producer(cluster, delivery_timeout_ms=0)) as producer:
            with pytest.raises((KafkaError, ConnectionError)):
                await producer.send_and_wait("t", b"v")
            await producer.send_and_wait("t", b"w")
        old, new = headers(broker)
        assert new.producer_id != old.producer_id
        assert new.base_sequence == 0

    play(scenario)


def test_a_batch_is_not_sent_without_a_producer_id_when_another_one_resets_it_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster)) as producer:
            await producer.send_and_wait("t", b"v")
            leader = cluster.leader

            async def leader_after_a_reset(tp: TopicPartition) -> int:
                producer._identity = None  # as a batch does that may have been stored, and has expired
                return await leader(tp)

            monkeypatch.setattr(cluster, "leader", leader_after_a_reset)
            await producer.send_and_wait("t", b"w")
        ids = [header.producer_id for header in headers(broker)]
        assert min(ids) >= 0
        assert ids[0] != ids[1]

    play(scenario)


def test_a_duplicate_of_an_old_batch_is_delivered_with_an_unknown_offset() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, refused(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
        async with watched(Producer(cluster)) as producer:
            assert (await producer.send_and_wait("t", b"v")).offset == -1

    play(scenario)


def test_a_batch_that_is_too_large_is_split_until_it_fits() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, *[refused(ErrorCode.MESSAGE_TOO_LARGE)] * 2)
        async with watched(Producer(cluster, linger_ms=60_000)) as producer:
            waiters = [await producer.send("t", b"%d" % number) for number in range(8)]
            await producer.flush()
        assert [waiter.result().offset for waiter in waiters] == list(range(8))
        assert [header.records_count for header in headers(broker)] == [8, 4, 2, 2, 4]
        assert [header.base_sequence for header in headers(broker)] == [0, 0, 0, 2, 4]

    play(scenario)


def test_a_single_record_that_is_too_large_fails() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, refused(ErrorCode.MESSAGE_TOO_LARGE))
        async with watched(Producer(cluster)) as producer:
            with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE: records for partition t-0"):
                await producer.send_and_wait("t", b"v")

    play(scenario)


def outcomes(waiters: list["asyncio.Future[RecordMetadata]"]) -> list[object]:
    """Return the offset of each record, or its error as text."""
    return [str(each.exception()) if each.exception() else each.result().offset for each in waiters]


def record_errors(*indexes: int) -> list[BatchIndexAndErrorMessage]:
    return [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message="no key") for index in indexes
    ]


def test_only_the_invalid_records_of_a_batch_fail_and_the_others_keep_their_order() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(
            ProduceRequest,
            refused(ErrorCode.INVALID_RECORD, record_errors=record_errors(1, 4)),
            refused(ErrorCode.INVALID_TIMESTAMP, record_errors=record_errors(0)),
        )
        async with watched(Producer(cluster, linger_ms=60_000)) as producer:
            waiters = [await producer.send("t", b"%d" % number) for number in range(5)]
            await producer.flush()
            waiters.append(await producer.send("t", b"5"))
        assert outcomes(waiters) == [
            "INVALID_TIMESTAMP: no key",
            "INVALID_RECORD: no key",
            0,
            1,
            "INVALID_RECORD: no key",
            2,
        ]
        assert [record.value for record in broker.records("t")] == [b"2", b"3", b"5"]
        assert [header.base_sequence for header in headers(broker)] == [0, 0, 0, 2]

    play(scenario)


def test_a_batch_of_invalid_records_only_is_not_sent_again() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, refused(ErrorCode.INVALID_RECORD, record_errors=record_errors(0, 1)))
        async with watched(Producer(cluster, linger_ms=60_000)) as producer:
            waiters = [await producer.send("t", b"v") for _ in range(2)]
            await producer.flush()
        assert outcomes(waiters) == ["INVALID_RECORD: no key"] * 2
        assert len(broker.received(ProduceRequest)) == 1

    play(scenario)


def test_invalid_records_are_located_by_bisection_if_the_broker_does_not_name_them() -> None:
    def refuse_two(request: ProduceRequest) -> object:
        [partition] = request.topic_data[0].partition_data
        assert partition.records is not None
        has_two = any(record.value == b"2" for record in decode_all(bytes(partition.records)))
        return refused(ErrorCode.INVALID_TIMESTAMP, error_message="too old")(request) if has_two else None

    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        def answer(request: ProduceRequest) -> object:
            return refuse_two(request) or broker.produce(request)

        broker.answer(ProduceRequest, *[answer] * 7)
        async with watched(Producer(cluster, linger_ms=60_000)) as producer:
            waiters = [await producer.send("t", b"%d" % number) for number in range(4)]
            await producer.flush()
        assert outcomes(waiters) == [0, 1, "INVALID_TIMESTAMP: too old", 2]

    play(scenario)


def test_a_flush_covers_records_that_are_resent_after_an_error() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(
            ProduceRequest,
            refused(ErrorCode.INVALID_RECORD, record_errors=record_errors(2)),
            refused(ErrorCode.MESSAGE_TOO_LARGE),
        )
        async with watched(Producer(cluster, linger_ms=60_000)) as producer:
            waiters = [await producer.send("t", b"%d" % number) for number in range(3)]
            await producer.flush()
            assert outcomes(waiters) == [0, 1, "INVALID_RECORD: no key"]

    play(scenario)


def test_a_partition_missing_from_the_response_has_failed() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, lambda _: ProduceResponse())
        async with watched(Producer(cluster)) as producer:
            with pytest.raises(KafkaError, match="lacks partition t-0"):
                await producer.send_and_wait("t", b"v")

    play(scenario)


def test_retries_end_with_the_delivery_timeout() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.answer(ProduceRequest, *[lambda _: HANG_UP] * 500)
        async with watched(Producer(cluster, delivery_timeout_ms=30)) as producer:
            with pytest.raises(ConnectionLost):
                await producer.send_and_wait("t", b"v")

    play(scenario)


def test_without_a_producer_id_nothing_is_sent() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        denied = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        broker.answer(InitProducerIdRequest, lambda _: denied)
        async with watched(Producer(cluster)) as producer:
            with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
                await producer.send_and_wait("t", b"v")
        assert broker.received(ProduceRequest) == []

    play(scenario)


def test_acks_1_needs_no_producer_id() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster, acks=1)) as producer:
            assert (await producer.send_and_wait("t", b"v")).offset == 0
        assert broker.received(InitProducerIdRequest) == []
        assert broker.received(ProduceRequest)[0].acks == 1

    play(scenario)


def test_acks_0_waits_for_no_response() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster, acks=0)) as producer:
            assert (await producer.send_and_wait("t", b"v")).offset == -1
            await producer.send_and_wait("t", b"w")
        while broker.topics["t"].next_offsets[0] < 2:
            await asyncio.sleep(0)

    play(scenario)


def test_other_acks_are_rejected() -> None:
    with pytest.raises(ValueError, match="acks=2: -1"):
        Producer(ClusterClient("localhost"), acks=2)


@pytest.mark.parametrize("compression", list(Compression))
def test_every_codec_works(compression: Compression) -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster, compression=compression, linger_ms=60_000)) as producer:
            for _ in range(50):
                await producer.send("t", b"value" * 10)
        assert headers(broker)[0].compression is compression
        assert [record.value for record in broker.records("t")] == [b"value" * 10] * 50

    play(scenario)


def test_brokers_without_topic_ids_get_names() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster)) as producer:
            await producer.send_and_wait("t", b"v")
        assert broker.received(ProduceRequest)[0].topic_data[0].name == "t"

    play(scenario, versions={MetadataRequest: Versions(0, 9)})


def test_a_missing_topic_is_awaited_if_the_broker_creates_it() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        broker.auto_create = True
        async with watched(Producer(cluster)) as producer:
            assert (await producer.send_and_wait("fresh", b"v")).offset == 0

    play(scenario)


def test_a_missing_topic_is_an_error_if_the_broker_does_not_create_it() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster, topic_timeout_ms=10)) as producer:
            with pytest.raises(KafkaError, match="topic 'missing' does not exist"):
                await producer.send("missing", b"v")

    play(scenario)


def test_an_unreachable_broker_is_awaited_longer_than_a_missing_topic() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster, topic_timeout_ms=0)) as producer:
            await producer.send_and_wait("t", b"before")
            broker.answer(MetadataRequest, *[lambda _: HANG_UP] * 10)
            cluster.invalidate()
            assert (await producer.send_and_wait("t", b"after")).offset == 1

    play(scenario)


def test_a_full_buffer_blocks_send() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster, batch_size_bytes=500, buffer_size_bytes=1_000)) as producer:
            for _ in range(50):
                await producer.send("t", b"v" * 100)
                assert producer._accumulator.size_bytes <= 1_200
        assert len(broker.records("t")) == 50

    play(scenario)


def test_an_exception_in_the_block_discards_unsent_records() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        producer = Producer(cluster, linger_ms=60_000)
        delivery = await producer.send("t", b"v")
        await producer.__aexit__(ZeroDivisionError, ZeroDivisionError(), None)
        assert delivery.cancelled()
        assert broker.received(ProduceRequest) == []

    play(scenario)


def test_a_record_that_cannot_be_encoded_is_refused_and_others_are_delivered() -> None:
    async def scenario(broker: FakeBroker, cluster: ClusterClient) -> None:
        async with watched(Producer(cluster)) as producer:
            first = await producer.send("t", b"1")
            with pytest.raises(TypeError, match="a value must be bytes or None, not list"):
                await producer.send("t", [b"2"])  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="a header's value must be bytes or None, not str"):
                await producer.send("t", b"2", headers=(("h", "v"),))  # type: ignore[arg-type]
            assert (await first).offset == 0

    play(scenario)
