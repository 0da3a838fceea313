"""TxnOffsetCommit on a node: verified, appended within the transaction, completed by its marker."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.coordinator.partition_of import partition_of
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.images import new_topic
from support.loop import on_loop, turns
from support.nodes import RunningNode, running_node
from support.offsets import codes, found
from support.transactions import marker, write_markers_request

OFFSETS_TOPIC = "__consumer_offsets"


async def prepare(node: RunningNode) -> None:
    """Create a topic of two partitions and the coordinator of group `g`, without transaction verification."""
    node.broker.transaction_verifier = None
    await node.create(new_topic("t", 2))
    await node.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
    await turns()


def commit_request(
    *offsets: int, group_id: str = "g", producer_id: int = 7, **fields: Any
) -> TxnOffsetCommitRequest:
    """Build a commit of offsets of successive partitions of `t`."""
    partitions = [
        TxnOffsetCommitRequestPartition(index, offset, committed_metadata=None)
        for index, offset in enumerate(offsets)
    ]
    topics = [TxnOffsetCommitRequestTopic("t", partitions)]
    return TxnOffsetCommitRequest("tx", group_id, producer_id, topics=topics, **fields)


async def fetch(node: RunningNode, *, require_stable: bool = False) -> dict[Any, Any]:
    asked = OffsetFetchRequestGroup("g", topics=None)
    [group] = (await node.ask(OffsetFetchRequest(groups=[asked], require_stable=require_stable), 9)).groups
    return found(group)


async def end(node: RunningNode, *, commit: bool) -> None:
    index = partition_of("g", node.broker.image.topics[OFFSETS_TOPIC].partition_count)
    await node.ask(write_markers_request(marker(7, OFFSETS_TOPIC, commit=commit, partitions=(index,))))


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_are_visible_after_their_transaction_commits(
    tmp_path: Path, version: int, commit: bool
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node)
            assert codes(await node.ask(commit_request(5, 6), version)) == {("t", 0): 0, ("t", 1): 0}
            assert await fetch(node) == {}
            await end(node, commit=commit)
            assert await fetch(node, require_stable=True) == ({("t", 0): 5, ("t", 1): 6} if commit else {})

    scenario()


@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_survives_a_restart(tmp_path: Path, commit: bool) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node)
            await node.ask(commit_request(5), 3)
            store = node.store
        async with running_node(tmp_path, store) as node:
            await turns(50)
            assert await fetch(node) == {}
            await end(node, commit=commit)
            assert await fetch(node) == ({("t", 0): 5} if commit else {})

    scenario()


@on_loop
async def test_missing_partitions_are_errors_and_others_succeed(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        request = commit_request(5, 6, 7)
        request.topics.append(TxnOffsetCommitRequestTopic("missing", [TxnOffsetCommitRequestPartition(0)]))
        assert codes(await node.ask(request)) == {("t", 0): 0, ("t", 1): 0, ("t", 2): 3, ("missing", 0): 3}
        request.topics = request.topics[1:]
        assert codes(await node.ask(request)) == {("missing", 0): 3}


@on_loop
async def test_a_fenced_producer_or_unknown_generation_commits_nothing(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await prepare(node)
        await node.ask(commit_request(5, producer_epoch=3), 3)
        for request, code in (
            (commit_request(9, producer_epoch=2), ErrorCode.INVALID_PRODUCER_EPOCH),
            (commit_request(9, group_id=""), ErrorCode.INVALID_GROUP_ID),
            (commit_request(9, group_id="nobody", generation_id=4), ErrorCode.ILLEGAL_GENERATION),
        ):
            assert codes(await node.ask(request, 3)) == {("t", 0): code}
        table = node.broker.groups.runner("g").shard.offsets.table
        assert table.statistics() == {"offsets_count": 0, "pending_offsets_count": 1}


class Verifier:
    """A fake with a configurable response, which records its calls."""

    def __init__(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.code = code
        self.calls: list[tuple[Any, ...]] = []

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        self.calls.append((transactional_id, producer_id, producer_epoch, *partitions, adds))
        return dict.fromkeys(partitions, self.code)


@pytest.mark.parametrize(("version", "adds"), [(3, False), (4, False), (5, True)])
def test_the_transaction_coordinator_is_called_once(tmp_path: Path, version: int, adds: bool) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node)
            verifier = Verifier()
            node.broker.transaction_verifier = verifier
            assert codes(await node.ask(commit_request(5), version)) == {("t", 0): 0}
            assert codes(await node.ask(commit_request(6), version)) == {("t", 0): 0}
            assert verifier.calls == [
                ("tx", 7, 0, TopicPartition(OFFSETS_TOPIC, partition_of("g", 50)), adds)
            ]

    scenario()


@pytest.mark.parametrize(
    ("version", "verifier_error", "expected"),
    [
        (2, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (3, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (5, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_an_error_of_the_transaction_coordinator_is_returned(
    tmp_path: Path, version: int, verifier_error: ErrorCode, expected: ErrorCode
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await prepare(node)
            node.broker.transaction_verifier = Verifier(verifier_error)
            assert codes(await node.ask(commit_request(5), version)) == {("t", 0): expected}
            await end(node, commit=True)
            assert await fetch(node) == {}

    scenario()
