"""Fetch: what depends on the API version, and long lists of aborted transactions."""

from collections.abc import Coroutine
from pathlib import Path

import pytest

from barnabas.api.data import fetch as module
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.wire.records.control import EndTransactionMarker
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, frame_of, response_of, running_node


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.KAFKA_STORAGE_ERROR),
        (18, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
@on_loop
async def test_a_failed_disk_is_reported_to_versions_that_have_the_error(
    tmp_path: Path, version: int, code: ErrorCode
) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        node.partition("t").log.take_offline(OSError(5, "Input/output error"))
        partitions = [FetchPartition(partition=0, partition_max_bytes=1000)]
        topics = [FetchTopic(topic="t", topic_id=node.topic_id("t"), partitions=partitions)]
        response = await node.ask(FetchRequest(max_bytes=1000, min_bytes=1, topics=topics), version)
        [answer] = response.responses[0].partitions
        assert answer.error_code == code


def abort(node: RunningNode, producer_id: int) -> int:
    """Write a transaction of one record, abort it, and return the offset of the record."""
    partition = node.partition("t")
    offset = partition.log.log_end_offset
    verification = partition.log.producers.start_verification(producer_id, 0, 0, bumps_epochs=False)
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    partition.append_as_leader(batch(b"v", **options), 1, verification)
    partition.append_transaction_marker(
        EndTransactionMarker(producer_id, 0, 0, False, node.clock.wall_ms()), 0
    )
    return offset


@pytest.mark.parametrize("version", [4, 11, 12, 18])
@on_loop
async def test_a_long_list_of_aborted_transactions_is_encoded_in_a_thread(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITTEN_ABORTED_MAX", 4)
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        aborted = [(producer_id, abort(node, producer_id)) for producer_id in range(5)]
        partitions = [FetchPartition(partition=0, partition_max_bytes=10_000)]
        topics = [FetchTopic("t", node.topic_id("t"), partitions)]
        request = FetchRequest(max_bytes=10_000, min_bytes=1, isolation_level=1, topics=topics)
        _, answer = node.begin(frame_of(request, version))
        assert isinstance(answer, Coroutine)
        response = response_of(FetchResponse, version, b"".join(await answer))
        found = response.responses[0].partitions[0].aborted_transactions or []
        assert [(each.producer_id, each.first_offset) for each in found] == aborted
