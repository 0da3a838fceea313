"""Transactions through the admin client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.transactions import ProducerDescription, TransactionListing, Transactions
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.retry import Retry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import list_transactions as listed
from barnabas.wire.messages import write_txn_markers as markers
from support.loop import on_loop
from unit.client.fake_broker import NODE_ID, FakeBroker
from unit.client.fake_coordinator import FakeCoordinator, serve_transactions

TP = TopicPartition("t", 1)


@asynccontextmanager
async def transactions(coordinator_epoch: int = 3) -> AsyncIterator[tuple[Transactions, FakeBroker]]:
    async with FakeBroker() as broker:
        FakeCoordinator(broker)
        serve_transactions(broker, coordinator_epoch)
        async with ClusterClient(broker.bootstrap, retry=Retry(first_ms=1, pause_ms_max=1)) as cluster:
            yield Transactions(cluster), broker


@on_loop
async def test_transactional_ids_are_listed_by_name() -> None:
    async with transactions() as (admin, broker):
        assert await admin.list(["Ongoing"], [7], longer_than_ms=5, pattern="a.*") == [
            TransactionListing("a", 7, "Ongoing"),
            TransactionListing("b", 8, "Empty"),
        ]
        [request] = broker.received(listed.ListTransactionsRequest)
        assert request == listed.ListTransactionsRequest(["Ongoing"], [7], 5, "a.*")


@on_loop
async def test_a_transaction_is_described_by_its_coordinator() -> None:
    async with transactions() as (admin, _):
        found = await admin.describe("a")
        assert found == ("a", NODE_ID, "Ongoing", 7, 2, 60_000, 1_000, [TopicPartition("t", 0), TP])


@on_loop
async def test_the_partition_leader_describes_producers() -> None:
    async with transactions() as (admin, _):
        assert list(await admin.producers(TP)) == [
            ProducerDescription(8, 0, 5, 900, -1, None),
            ProducerDescription(7, 2, 4, 1_000, 3, 7),
        ]


@pytest.mark.parametrize(("known", "sent"), [(3, 3), (-1, 0)])
def test_a_transaction_is_aborted_by_a_marker_of_its_producer(known: int, sent: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with transactions(known) as (admin, broker):
            assert (await admin.abort(TP, 7)).producer_id == 7
            [request] = broker.received(markers.WriteTxnMarkersRequest)
            topic = markers.WritableTxnMarkerTopic("t", [1])
            assert request.markers == [markers.WritableTxnMarker(7, 2, False, [topic], sent)]

    scenario()


@on_loop
async def test_without_an_open_transaction_nothing_is_aborted() -> None:
    async with transactions() as (admin, broker):
        with pytest.raises(KafkaError, match="no open transaction of t-1 begins at offset 5") as caught:
            await admin.abort(TP, 5)
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE
        assert not broker.received(markers.WriteTxnMarkersRequest)
