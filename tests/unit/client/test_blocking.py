import threading

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.errors import BrokerUnreachable
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from unit.client.fake_broker import FakeBroker
from unit.client.fake_coordinator import GROUP, FakeCoordinator, serve_transactions

TP = TopicPartition("t", 0)


def test_a_round_trip_without_async(threaded_broker: FakeBroker) -> None:
    with BlockingClient(threaded_broker.bootstrap) as client:
        client.admin.create_topics([NewTopic("t")])
        with client.producer() as producer:
            futures = [producer.send("t", b"%d" % number) for number in range(10)]
            assert producer.send_and_wait("t", b"last").offset == 10
            assert [future.result().offset for future in futures] == list(range(10))
        with client.consumer({TP: EARLIEST}, stop_at_end=True) as consumer:
            assert [record.value for record in consumer] == [
                *(b"%d" % number for number in range(10)),
                b"last",
            ]
        assert client.admin.list_offsets({TP: LATEST}) == {TP: ListedOffset(11, -1, -1)}


def test_groups_and_transactions_without_async(threaded_broker: FakeBroker) -> None:
    coordinator = FakeCoordinator(threaded_broker)
    serve_transactions(threaded_broker)
    with BlockingClient(threaded_broker.bootstrap) as client:
        assert [group.group_id for group in client.groups.list()] == [GROUP]
        assert client.groups.commit_offsets(GROUP, {TP: 3}) == {TP: None}
        assert coordinator.offsets == {TP: 3}
        assert client.transactions.describe("a").state == "Ongoing"


def test_errors_are_raised_in_the_calling_thread(threaded_broker: FakeBroker) -> None:
    with BlockingClient(threaded_broker.bootstrap) as client:
        with pytest.raises(KafkaError, match="topic 'missing' does not exist"):
            client.consumer({TopicPartition("missing", 0): EARLIEST})
        threaded_broker.create("t")
        threaded_broker.answer(InitProducerIdRequest, lambda _: InitProducerIdResponse(error_code=31))
        with client.producer() as producer:
            assert isinstance(producer.send("t", b"v").exception(5), KafkaError)


def test_abandoned_calls_are_cancelled(threaded_broker: FakeBroker) -> None:
    threaded_broker.create("t")
    with BlockingClient(threaded_broker.bootstrap) as client:
        producer = client.producer(linger_ms=60_000)
        delivery = producer.send("t", b"v")
        producer.close(flush=False)
        client.admin.describe_cluster()  # the loop has run since
        assert delivery.cancelled()


def test_closing_the_client_ends_its_producers(threaded_broker: FakeBroker) -> None:
    threaded_broker.create("t")
    client = BlockingClient(threaded_broker.bootstrap)
    delivery = client.producer(linger_ms=60_000).send("t", b"v")
    client.close()
    assert delivery.cancelled()


def test_no_thread_is_left(threaded_broker: FakeBroker) -> None:
    before = threading.active_count()
    with BlockingClient(threaded_broker.bootstrap):
        assert threading.active_count() == before + 1
    with pytest.raises(BrokerUnreachable):
        BlockingClient("127.0.0.1:1")
    assert threading.active_count() == before
