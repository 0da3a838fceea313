"""Whole transactions through a node: producer ids, partitions, records, markers, and fetches."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.topic_names import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.metadata.acls import decide_create_acls
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from support.acls import ALICE, AUTHORIZED, ROOT
from support.images import new_topic
from support.loop import in_virtual_time, on_loop
from support.memory_store import MemoryStore
from support.nodes import RunningNode, running_node
from support.transactions import BEFORE_IMPLICIT, IMPLICIT, transactional, transactional_produce_request

TX = "payments"
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
FEW_PARTITIONS = {"transaction_state_log_num_partitions": "2", "offsets_topic_num_partitions": "4"}


@asynccontextmanager
async def coordinating(
    path: Path, store: MemoryStore | None = None, **overrides: str
) -> AsyncIterator[RunningNode]:
    """Run a node with a transaction coordinator and topic t of two partitions."""
    async with running_node(path, store, **FEW_PARTITIONS, **overrides) as node:
        node.connection.principal = ROOT
        if "t" not in node.broker.image.topics:
            await node.create(new_topic("t", 2))
        await node.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[TX]))
        while node.broker.transactions.is_loading:
            await asyncio.sleep(0)
        yield node


async def init(node: RunningNode, version: int = 5, **fields: Any) -> Any:
    asked = {"transactional_id": TX, "transaction_timeout_ms": 60_000, **fields}
    return await node.ask(InitProducerIdRequest(**asked), version)


async def add(node: RunningNode, *indexes: int, topic: str = "t", version: int = 3, **fields: Any) -> Any:
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))]
    asked = {"producer_id": 0, "producer_epoch": 0, **fields}
    answer = await node.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TX,
            v3_and_below_producer_id=asked["producer_id"],
            v3_and_below_producer_epoch=asked["producer_epoch"],
            v3_and_below_topics=topics,
        ),
        version,
    )
    return codes(answer.results_by_topic_v3_and_below)


def codes(topics: Any) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, result.partition_index): ErrorCode(result.partition_error_code)
        for topic in topics
        for result in topic.results_by_partition
    }


async def end(node: RunningNode, *, commit: bool, epoch: int = 0, version: int = 4) -> Any:
    asked = EndTxnRequest(transactional_id=TX, producer_id=0, producer_epoch=epoch, committed=commit)
    return await node.ask(asked, version)


async def produce(
    node: RunningNode, sequence: int = 0, epoch: int = 0, version: int = BEFORE_IMPLICIT
) -> Any:
    request = transactional_produce_request(
        "t", transactional(0, sequence, b"x", epoch=epoch), transactional_id=TX
    )
    if version > IMPLICIT:
        request.topic_data[0].topic_id = node.topic_id("t")
    answer = await node.ask(request, version)
    return answer.responses[0].partition_responses[0]


async def state(node: RunningNode, transactional_id: str = TX) -> Any:
    answer = await node.ask(DescribeTransactionsRequest(transactional_ids=[transactional_id]))
    return answer.transaction_states[0]


async def completed(node: RunningNode) -> str:
    """Return the state of the transactional id after its markers are written."""
    while (found := (await state(node)).transaction_state).startswith("Prepare"):
        await asyncio.sleep(0.01)
    return str(found)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_of_a_client_before_kip_890(tmp_path: Path, commit: bool) -> None:
    @on_loop
    async def scenario() -> None:
        async with coordinating(tmp_path) as node:
            given = await init(node)
            assert (given.error_code, given.producer_id, given.producer_epoch) == (0, 0, 0)
            assert await add(node, 0, 1) == {("t", 0): ErrorCode.NONE, ("t", 1): ErrorCode.NONE}
            assert (await produce(node)).error_code == 0
            log = node.partition("t").log
            assert (log.last_stable_offset, log.log_end_offset) == (0, 1)
            described = await state(node)
            assert (described.transaction_state, described.topics[0].partitions) == ("Ongoing", [0, 1])
            assert (await end(node, commit=commit)).error_code == 0
            assert await completed(node) == ("CompleteCommit" if commit else "CompleteAbort")
            assert (log.last_stable_offset, log.log_end_offset) == (2, 2)
            assert node.partition("t", 1).log.log_end_offset == 1
            assert (await end(node, commit=commit)).error_code == 0

    scenario()


@on_loop
async def test_with_kip_890_produce_adds_partitions_and_each_end_bumps_the_epoch(
    tmp_path: Path,
) -> None:
    async with coordinating(tmp_path) as node:
        await init(node)
        for epoch in range(3):
            assert (await produce(node, epoch=epoch, version=13)).error_code == 0
            assert (await state(node)).topics[0].partitions == [0]
            ended = await end(node, commit=True, epoch=epoch, version=5)
            assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (0, 0, epoch + 1)
            assert await completed(node) == "CompleteCommit"
        assert node.partition("t").log.last_stable_offset == 6


@on_loop
async def test_a_partition_that_was_not_added_rejects_records(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        await init(node)
        assert (await produce(node)).error_code == ErrorCode.TRANSACTION_ABORTABLE
        await add(node, 1)
        assert (await produce(node)).error_code == ErrorCode.TRANSACTION_ABORTABLE
        await add(node, 0)
        assert (await produce(node)).error_code == 0


@on_loop
async def test_a_zombie_is_fenced(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        await init(node)
        await add(node, 0)
        await produce(node)
        assert (await init(node)).error_code == CONCURRENT
        assert await completed(node) == "CompleteAbort"
        given = await init(node)
        assert (given.error_code, given.producer_id, given.producer_epoch) == (0, 0, 2)
        assert (await produce(node, 1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert set((await add(node, 0)).values()) == {ErrorCode.PRODUCER_FENCED}
        assert set((await add(node, 0, version=1)).values()) == {ErrorCode.INVALID_PRODUCER_EPOCH}
        assert (await end(node, commit=True)).error_code == ErrorCode.PRODUCER_FENCED
        assert (await end(node, commit=True, version=1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        fenced = await init(node, producer_id=0, producer_epoch=0)
        assert (fenced.error_code, fenced.producer_id) == (ErrorCode.PRODUCER_FENCED, -1)
        fenced = await init(node, 3, producer_id=0, producer_epoch=0)
        assert fenced.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_000}, ErrorCode.NONE),
        ({"enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_producer_requests_are_validated(tmp_path: Path, fields: dict[str, Any], code: ErrorCode) -> None:
    @on_loop
    async def scenario() -> None:
        async with coordinating(tmp_path) as node:
            assert (await init(node, 6, **fields)).error_code == code

    scenario()


@on_loop
async def test_two_phase_commit_has_no_timeout_if_enabled(tmp_path: Path) -> None:
    async with coordinating(tmp_path, transaction_two_phase_commit_enable="true") as node:
        assert (await init(node, 6, enable2_pc=True, transaction_timeout_ms=0)).error_code == 0
        assert (await state(node)).transaction_timeout_ms == 2**31 - 1


@on_loop
async def test_one_invalid_partition_fails_the_whole_request(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        await init(node)
        assert await add(node, 0, 7) == {
            ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await add(node, 0, topic="gone") == {("gone", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        internal = await add(node, 0, topic=TRANSACTION_TOPIC)
        assert set(internal.values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert (await state(node)).transaction_state == "Empty"


@on_loop
async def test_brokers_verify_many_transactions_at_once(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        await init(node)
        topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
        answer = await node.ask(
            AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id=name, producer_id=0, verify_only=only, topics=topics
                    )
                    for name, only in [(TX, True), (TX, False), (TX, True), ("", False), ("nobody", False)]
                ]
            )
        )
        found = [
            code for each in answer.results_by_transaction for code in codes(each.topic_results).values()
        ]
        assert found == [
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ]


@on_loop
async def test_the_offsets_partition_of_a_group_is_added(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        await init(node)
        for transactional_id, code in [(TX, 0), ("", 42), ("nobody", 49)]:
            request = AddOffsetsToTxnRequest(transactional_id=transactional_id, producer_id=0, group_id="g")
            assert (await node.ask(request)).error_code == code
        (topic,) = (await state(node)).topics
        assert (topic.topic, topic.partitions) == (GROUP_TOPIC, [ord("g") % 4])


@on_loop
async def test_transactional_ids_are_listed_by_state_producer_duration_and_pattern(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        for name in (TX, "other", "another"):
            await init(node, transactional_id=name)
        await add(node, 0)
        node.clock.advance(100)

        async def listed(**filters: Any) -> tuple[set[str], list[str]]:
            answer = await node.ask(ListTransactionsRequest(**filters))
            return {each.transactional_id for each in answer.transaction_states}, answer.unknown_state_filters

        assert await listed() == ({TX, "other", "another"}, [])
        assert await listed(state_filters=["Ongoing", "Empty"], producer_id_filters=[0, 1]) == (
            {TX, "other"},
            [],
        )
        assert await listed(state_filters=["Open"]) == (set(), ["Open"])
        assert await listed(duration_filter=99, state_filters=["Ongoing"]) == ({TX}, [])
        assert await listed(duration_filter=100, state_filters=["Ongoing"]) == (set(), [])
        assert await listed(transactional_id_pattern=".*other") == ({"other", "another"}, [])
        wrong = await node.ask(ListTransactionsRequest(transactional_id_pattern="("))
        assert wrong.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@on_loop
async def test_an_unknown_transactional_id_cannot_be_described(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        assert (await state(node)).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert (await state(node, "")).error_code == ErrorCode.INVALID_REQUEST


@in_virtual_time
async def test_a_transaction_beyond_its_timeout_is_aborted(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        await init(node, transaction_timeout_ms=1000)
        await add(node, 0)
        await produce(node)
        node.clock.advance(1001)
        await asyncio.sleep(10.1)
        assert await completed(node) == "CompleteAbort"
        assert node.partition("t").log.last_stable_offset == 2
        assert (await state(node)).producer_epoch == 1


@on_loop
async def test_a_prepared_transaction_is_completed_after_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    async with coordinating(tmp_path, store) as node:
        await init(node)
        await add(node, 0)
        await produce(node)
        coordinator = node.broker.transactions
        coordinator._do = lambda effect: None  # the broker stops before a marker is written
        for runner in coordinator._runners.values():
            runner._do = coordinator._do
        assert (await end(node, commit=True)).error_code == 0
        assert (await state(node)).transaction_state == "PrepareCommit"
        assert node.partition("t").log.last_stable_offset == 0
    async with coordinating(tmp_path, store) as node:
        assert await completed(node) == "CompleteCommit"
        assert node.partition("t").log.last_stable_offset == 2


@on_loop
async def test_partitions_of_a_deleted_topic_do_not_delay_the_end(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        await init(node)
        await add(node, 0)
        await node.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        assert (await end(node, commit=True)).error_code == 0
        assert await completed(node) == "CompleteCommit"


@on_loop
async def test_an_implicit_write_waits_briefly_for_the_previous_transaction(tmp_path: Path) -> None:
    async with coordinating(tmp_path) as node:
        await init(node)
        assert (await produce(node, version=13)).error_code == 0
        coordinator = node.broker.transactions
        held: list[Any] = []
        do = coordinator._do
        for runner in coordinator._runners.values():
            runner._do = held.append
        await end(node, commit=True, version=5)
        writing = asyncio.create_task(produce(node, epoch=1, version=13))
        await asyncio.sleep(0.03)
        assert not writing.done()
        for effect in held:
            do(effect)
        assert (await writing).error_code == 0


@on_loop
async def test_a_write_that_waits_too_long_for_the_previous_transaction_is_retriable(
    tmp_path: Path,
) -> None:
    backoff = {
        "add_partitions_to_txn_retry_backoff_ms": "1",
        "add_partitions_to_txn_retry_backoff_max_ms": "2",
    }
    async with coordinating(tmp_path, **backoff) as node:
        await init(node)
        await produce(node, version=13)
        for runner in node.broker.transactions._runners.values():
            runner._do = lambda effect: None
        await end(node, commit=True, version=5)
        assert (await produce(node, epoch=1, version=13)).error_code == CONCURRENT


@on_loop
async def test_clients_need_permission_for_the_transactional_id_and_the_topic(tmp_path: Path) -> None:
    async with coordinating(tmp_path, **AUTHORIZED) as node:
        await init(node)

        async def allow(resource_type: ResourceType, name: str) -> None:
            rule = AclBinding(
                resource_type, name, PatternType.LITERAL, ALICE, "*", AclOperation.WRITE, AclPermission.ALLOW
            )
            await node.broker.metadata.write(lambda image: decide_create_acls(image.acls, [rule]))

        node.connection.principal = ALICE
        assert set((await add(node, 0)).values()) == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
        await allow(ResourceType.TRANSACTIONAL_ID, TX)
        assert set((await add(node, 0)).values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        await allow(ResourceType.TOPIC, "t")
        assert set((await add(node, 0)).values()) == {ErrorCode.NONE}
        described = await state(node)
        assert described.topics[0].topic == "t"
        two_phase = await init(node, 6, enable2_pc=True)
        assert two_phase.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@on_loop
async def test_transactional_ids_without_describe_permission_are_omitted(tmp_path: Path) -> None:
    async with coordinating(tmp_path, **AUTHORIZED) as node:
        await init(node)
        await add(node, 0)
        node.connection.principal = ALICE
        assert (await node.ask(ListTransactionsRequest())).transaction_states == []
        rule = AclBinding(
            ResourceType.TRANSACTIONAL_ID, TX, PatternType.LITERAL, ALICE, "*", AclOperation.DESCRIBE,
            AclPermission.ALLOW,
        )  # fmt: skip
        await node.broker.metadata.write(lambda image: decide_create_acls(image.acls, [rule]))
        assert [
            each.transactional_id for each in (await node.ask(ListTransactionsRequest())).transaction_states
        ] == [TX]
        described = await state(node)
        assert (described.transaction_state, described.topics) == ("Ongoing", [])
