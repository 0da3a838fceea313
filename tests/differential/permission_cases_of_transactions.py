"""Requests about transactional ids of which only some are "mine", and their initial states."""

from typing import Any

from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from differential.batches import Batch
from differential.brokers import wait_for
from differential.permission_cases_of_groups import Case
from differential.sequences import create, topic
from differential.symbols import Name, Producer, TopicId
from differential.world import World
from support.transactions import marker, write_markers_request

TIMEOUT_MS = 600_000
#: Transactional ids in the order of their producer ids. The first two have an open transaction.
IDS = ("mine-open", "other-open", "mine-done")
MINE, OTHERS, DONE = range(3)
TOPICS = ("mine-t", "other-t")


def begin_transactions(world: World) -> None:
    """Create topics and transactions in them: two are open, one is committed."""
    assert world.exchange(*create(*map(topic, TOPICS))) == []
    for transactional_id in IDS:
        _initialize(world, transactional_id)
    for number in (MINE, OTHERS, DONE):
        assert world.exchange(_add_request(number, *TOPICS), 3) == []
    assert world.exchange(_end_request(DONE), 3) == []
    wait_for_ends(world)


def _initialize(world: World, transactional_id: str) -> None:
    request = InitProducerIdRequest(transactional_id, transaction_timeout_ms=TIMEOUT_MS)
    for side, names in world.sides():
        answer = side.exchange(request, InitProducerIdResponse, 4).body
        assert isinstance(answer, InitProducerIdResponse)
        assert not answer.error_code
        names.producer_ids.append(answer.producer_id)


def wait_for_ends(world: World) -> None:
    """Wait until transactions that end have their markers, which Kafka writes after the response."""
    request = DescribeTransactionsRequest(transactional_ids=list(IDS))
    for side, _ in world.sides():
        wait_for(
            side,
            request,
            DescribeTransactionsResponse,
            0,
            lambda found: (
                not any(each.transaction_state.startswith("Prepare") for each in found.transaction_states)
            ),
        )


def _producer(number: int) -> Any:
    return Producer(number)


def _topics(*names: str) -> list[AddPartitionsToTxnTopic]:
    symbols: list[Any] = [Name(name) for name in names]
    return [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in symbols]


def _add_request(number: int, *topics: str, transactional_id: str | None = None) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id or IDS[number],
        v3_and_below_producer_id=_producer(number),
        v3_and_below_topics=_topics(*topics),
    )


def _add_batched_request(*, verify_only: bool) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=IDS[number],
                producer_id=_producer(number),
                verify_only=verify_only,
                topics=_topics(*TOPICS, "mine-missing"),
            )
            for number in (MINE, OTHERS)
        ]
    )


def _end_request(number: int, *, commit: bool = True) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=IDS[number], producer_id=_producer(number), committed=commit)


def _offset_commit_request(number: int, group: str) -> TxnOffsetCommitRequest:
    symbols: list[Any] = [Name(name) for name in (*TOPICS, "mine-missing", "other-missing")]
    return TxnOffsetCommitRequest(
        transactional_id=IDS[number],
        group_id=group,
        producer_id=_producer(number),
        topics=[
            TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(0, 5)]) for name in symbols
        ],
    )


def _produce_request(number: int, *topics: str, by_id: bool = False, **batch: Any) -> ProduceRequest:
    """Build a Produce request with the producer's next sequences, which unauthorized producers do not advance."""
    records: Any = Batch(producer=number, flaw="transactional", **batch)
    names: list[Any] = ["" if by_id else Name(name) for name in topics]
    ids: list[Any] = [TopicId(name) if by_id else bytes(16) for name in topics]
    return ProduceRequest(
        transactional_id=IDS[number],
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=topic_id,
                partition_data=[PartitionProduceData(index=0, records=records)],
            )
            for name, topic_id in zip(names, ids, strict=True)
        ],
    )


TRANSACTION_CASES: dict[str, Case] = {
    "InitProducerId of a transactional id of mine": Case(InitProducerIdRequest("mine-tx", 60_000), 5),
    "InitProducerId of another's transactional id": Case(InitProducerIdRequest("other-tx", 60_000), 4),
    "InitProducerId of mine with a producer id": Case(
        InitProducerIdRequest(IDS[DONE], 60_000, _producer(DONE), 7), 3
    ),
    "InitProducerId of mine for two-phase commits": Case(
        InitProducerIdRequest("mine-two-phase", 60_000, enable2_pc=True), 6
    ),
    "InitProducerId of no transactional id": Case(InitProducerIdRequest("", 60_000), 4),
    "AddPartitionsToTxn": Case(_add_request(MINE, *TOPICS), 3),
    "AddPartitionsToTxn of my topics": Case(_add_request(MINE, TOPICS[0]), 3),
    "AddPartitionsToTxn of a topic that is not there": Case(_add_request(MINE, TOPICS[0], "mine-missing"), 3),
    "AddPartitionsToTxn of another's topic that is not there": Case(_add_request(MINE, "other-missing"), 2),
    "AddPartitionsToTxn to another's transaction": Case(_add_request(OTHERS, TOPICS[0]), 1),
    "AddPartitionsToTxn of brokers": Case(_add_batched_request(verify_only=False), 4),
    "AddPartitionsToTxn of brokers that want to know": Case(_add_batched_request(verify_only=True), 5),
    "AddOffsetsToTxn": Case(AddOffsetsToTxnRequest(IDS[MINE], _producer(MINE), 0, "mine-pledged"), 3),
    "AddOffsetsToTxn of another's group": Case(
        AddOffsetsToTxnRequest(IDS[MINE], _producer(MINE), 0, "other-pledged"), 4
    ),
    "AddOffsetsToTxn to another's transaction": Case(
        AddOffsetsToTxnRequest(IDS[OTHERS], _producer(OTHERS), 0, "mine-pledged"), 3
    ),
    "TxnOffsetCommit in my transaction": Case(_offset_commit_request(MINE, "mine-pledged"), 3),
    "TxnOffsetCommit in my transaction that begins by it": Case(
        _offset_commit_request(MINE, "mine-pledged"), 5
    ),
    "TxnOffsetCommit in my transaction to another's group": Case(
        _offset_commit_request(MINE, "other-pledged"), 4
    ),
    "TxnOffsetCommit in another's transaction": Case(_offset_commit_request(OTHERS, "mine-pledged"), 3),
    "Produce in my transaction": Case(_produce_request(MINE, *TOPICS, restarts=True), 9),
    "Produce in my transaction by id": Case(_produce_request(MINE, *TOPICS, by_id=True, restarts=True), 13),
    "Produce in my transaction, to my topic": Case(_produce_request(MINE, TOPICS[0], restarts=True), 11),
    "Produce in another's transaction": Case(_produce_request(OTHERS, TOPICS[0], restarts=True), 12),
    "DescribeTransactions": Case(
        DescribeTransactionsRequest(transactional_ids=[*IDS, "mine-missing", "other-missing"]), 0
    ),
    "ListTransactions": Case(ListTransactionsRequest(), 0),
    "ListTransactions that are open": Case(ListTransactionsRequest(state_filters=["Ongoing"]), 2),
    "WriteTxnMarkers to missing topics": Case(write_markers_request(marker(9, "missing", commit=True)), 1),
    "EndTxn": Case(_end_request(DONE), 3),
    "EndTxn with the wrong outcome": Case(_end_request(DONE, commit=False), 4),
    "EndTxn of another's": Case(_end_request(OTHERS), 5),
}
