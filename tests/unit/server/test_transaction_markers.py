"""Transaction markers go to the leaders of their partitions, in few requests."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import ConnectionLost
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER
from barnabas.replication import transaction_markers
from barnabas.server.transaction_markers import TransactionMarkers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.wire.records.control import EndTransactionMarker
from support.images import cluster, manually_assigned, with_state
from support.loop import on_loop, turns
from support.nodes import running_node

HERE, THERE, ELSEWHERE = (TopicPartition("t", index) for index in range(3))
IMAGE = cluster(3, manually_assigned("t", [1], [2], [3]))


def marker(producer_id: int) -> EndTransactionMarker:
    return EndTransactionMarker(producer_id, 3, 4, True, 5)


class Client:
    """Answers NONE for each partition, or an error; holds answers until `release`."""

    def __init__(self, error: Exception | None = None, code: ErrorCode = ErrorCode.NONE) -> None:
        self.requests: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self._error = error
        self._code = code

    async def send(self, broker_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        self.requests.append((broker_id, request))
        await self.is_open.wait()
        if self._error is not None:
            raise self._error
        return WriteTxnMarkersResponse(
            [
                WritableTxnMarkerResult(
                    each.producer_id,
                    [
                        WritableTxnMarkerTopicResult(
                            topic.name,
                            [
                                WritableTxnMarkerPartitionResult(index, self._code)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in each.topics
                    ],
                )
                for each in request.markers
            ]
        )


def markers(client: Client, node: Any = None, image: MetadataImage = IMAGE) -> TransactionMarkers:
    replicas, flusher = (node.broker.replicas, node.broker.flusher) if node else (None, None)
    config = node.broker.config if node else None
    return TransactionMarkers(1, lambda: config, lambda: image, replicas, flusher, client)  # type: ignore[arg-type,return-value]


@on_loop
async def test_each_leader_gets_its_partitions_and_this_broker_writes_its_own(tmp_path: Path) -> None:
    client = Client()
    async with running_node(tmp_path) as node:
        await node.create(manually_assigned("t", [1]))
        written = await markers(client, node).write(marker(7), [HERE, THERE, ELSEWHERE], 2)
        assert written == dict.fromkeys([HERE, THERE, ELSEWHERE], ErrorCode.NONE)
        assert node.partition("t").log.log_end_offset == 1
    assert [broker_id for broker_id, _ in client.requests] == [2, 3]
    [sent] = client.requests[0][1].markers
    assert (sent.producer_id, sent.producer_epoch, sent.coordinator_epoch) == (7, 3, 4)
    assert (sent.transaction_result, sent.transaction_version) == (True, 2)
    assert [(topic.name, topic.partition_indexes) for topic in sent.topics] == [("t", [1])]


@on_loop
async def test_other_clients_are_served_between_many_markers_of_this_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_markers, "APPENDED_AT_ONCE_COUNT", 2)
    async with running_node(tmp_path) as node:
        await node.create(manually_assigned("t", *[[1]] * 5))
        partitions = [TopicPartition("t", index) for index in range(5)]
        counts: list[int] = []

        def count() -> None:
            ends = [node.partition("t", index).log.log_end_offset for index in range(5)]
            counts.append(sum(ends))
            if counts[-1] < 5:
                asyncio.get_running_loop().call_soon(count)

        count()
        image = node.broker.image
        written = await markers(Client(), node, image).write(marker(7), partitions, 2)
        assert written == dict.fromkeys(partitions, ErrorCode.NONE)
        await turns()
    assert counts == [0, 2, 4, 5]


@on_loop
async def test_markers_that_wait_for_a_broker_go_in_one_request() -> None:
    client = Client()
    client.is_open.clear()
    writer = markers(client)
    writes = [asyncio.ensure_future(writer.write(marker(number), [THERE], 2)) for number in range(5)]
    await turns(10)
    client.is_open.set()
    assert await asyncio.gather(*writes) == [{THERE: ErrorCode.NONE}] * 5
    sent = [[each.producer_id for each in request.markers] for _, request in client.requests]
    assert sent in ([[0], [1, 2, 3, 4]], [[0, 1, 2, 3, 4]])
    assert writer.statistics() == {"requests_count": len(sent), "waiting_count": 0}


@on_loop
async def test_errors_of_the_connection_and_of_the_broker_are_retried_later() -> None:
    lost = ConnectionLost(BrokerAddress("h", 1), "lost")
    assert await markers(Client(lost)).write(marker(1), [THERE], 2) == {THERE: ErrorCode.NETWORK_EXCEPTION}
    refused = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert await markers(Client(refused)).write(marker(1), [THERE], 2) == {
        THERE: ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    }


@on_loop
async def test_a_partition_that_a_broker_does_not_know_yet_is_not_given_up() -> None:
    client = Client(code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert await markers(client).write(marker(1), [THERE], 2) == {THERE: ErrorCode.NOT_LEADER_OR_FOLLOWER}


@on_loop
async def test_a_partition_without_a_leader_waits_for_one() -> None:
    topic = IMAGE.topics["t"]
    image = with_state(IMAGE, topic, 1, replace(IMAGE.partition(topic, 1), leader=NO_LEADER))
    client = Client()
    assert await markers(client, image=image).write(marker(1), [THERE], 2) == {
        THERE: ErrorCode.LEADER_NOT_AVAILABLE
    }
    assert client.requests == []


@on_loop
async def test_a_deleted_topic_needs_no_marker(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        gone = TopicPartition("gone", 0)
        written = await markers(Client(), node).write(marker(1), [gone], 2)
        assert written == {gone: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@on_loop
async def test_an_unexpected_error_is_retried_later_like_others() -> None:
    client = Client(ValueError("an answer that makes no sense"))
    assert await asyncio.wait_for(markers(client).write(marker(1), [THERE], 2), 10) == {
        THERE: ErrorCode.UNKNOWN_SERVER_ERROR
    }
