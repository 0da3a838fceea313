"""The coordinator of a transaction is asked, on whichever broker it is."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import TRANSACTION_TOPIC
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import ConnectionLost
from barnabas.coordinator.partition_of import partition_of
from barnabas.server.transaction_verifier import ClusterTransactionVerifier
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from support.images import cluster, manually_assigned
from support.loop import on_loop

A, B = TopicPartition("a", 0), TopicPartition("a", 1)
IMAGE = cluster(2, manually_assigned(TRANSACTION_TOPIC, [1], [2]))
ids = [f"tx{number}" for number in range(20)]
HERE = next(each for each in ids if partition_of(each, 2) == 0)
THERE = next(each for each in ids if partition_of(each, 2) == 1)


class Local:
    async def verify(self, *_: object, adds: bool) -> Mapping[TopicPartition, ErrorCode]:
        return {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE}


class Client:
    def __init__(self, answer: AddPartitionsToTxnResponse | Exception) -> None:
        self.answer = answer
        self.requests: list[tuple[int, AddPartitionsToTxnRequest]] = []

    async def send(self, broker_id: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        self.requests.append((broker_id, request))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def verify(
    answer: Any, transactional_id: str, partitions: Sequence[TopicPartition] = (A, B), *, adds: bool = False
) -> tuple[Mapping[TopicPartition, ErrorCode], Client]:
    client = Client(answer)
    verifier = ClusterTransactionVerifier(1, lambda: IMAGE, Local(), client)  # type: ignore[arg-type]
    return await verifier.verify(transactional_id, 7, 3, partitions, adds=adds), client


def response(*codes: int) -> AddPartitionsToTxnResponse:
    results = [AddPartitionsToTxnPartitionResult(index, code) for index, code in enumerate(codes)]
    topics = [AddPartitionsToTxnTopicResult("a", results)]
    return AddPartitionsToTxnResponse(results_by_transaction=[AddPartitionsToTxnResult(THERE, topics)])


@on_loop
async def test_a_coordinator_on_this_broker_is_asked_directly() -> None:
    codes, client = await verify(response(), HERE)
    assert codes == {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE}
    assert client.requests == []


@on_loop
async def test_an_error_that_only_a_newer_broker_knows_does_not_hide_the_other_partitions() -> None:
    codes, _ = await verify(response(ErrorCode.NONE, 9_999), THERE)
    assert codes == {A: ErrorCode.NONE, B: ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize("adds", [True, False])
def test_a_coordinator_on_another_broker_gets_a_request(adds: bool) -> None:
    @on_loop
    async def scenario() -> None:
        answer = response(ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE)
        codes, client = await verify(answer, THERE, adds=adds)
        assert codes == {A: ErrorCode.NONE, B: ErrorCode.INVALID_TXN_STATE}
        [(broker_id, request)] = client.requests
        [transaction] = request.transactions
        assert broker_id == 2
        assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == (
            THERE,
            7,
            3,
        )
        assert transaction.verify_only is not adds
        assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("a", [0, 1])]

    scenario()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (ConnectionLost(BrokerAddress("h", 1), "lost"), ErrorCode.NETWORK_EXCEPTION),
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION), ErrorCode.UNSUPPORTED_VERSION),
        (
            AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ),
    ],
)
def test_an_error_of_the_request_is_that_of_each_partition(answer: Any, code: ErrorCode) -> None:
    @on_loop
    async def scenario() -> None:
        codes, _ = await verify(answer, THERE)
        assert codes == {A: code, B: code}

    scenario()
