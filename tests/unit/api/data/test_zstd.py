"""zstd (KIP-110): rejected from producers before version 7, returned to consumers of every version."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.records.batch import COMPRESSION_MASK, iterate_headers
from barnabas.wire.records.compression import Compression
from support.batches import batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node


async def produce(node: RunningNode, version: int, codec: Compression) -> Any:
    data = PartitionProduceData(index=0, records=bytes(batch(b"value", compression=codec)))
    topic = TopicProduceData(name="t", topic_id=node.topic_id("t"), partition_data=[data])
    answer = await node.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), version)
    return answer.responses[0].partition_responses[0]


async def fetch(node: RunningNode, version: int) -> Any:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchTopic(topic="t", topic_id=node.topic_id("t"), partitions=[asked])
    return (await node.ask(FetchRequest(topics=[topic]), version)).responses[0].partitions[0]


@pytest.mark.parametrize(
    ("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)]
)
@on_loop
async def test_producers_may_send_zstd_since_version_7(tmp_path: Path, version: int, code: ErrorCode) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 1))
        assert (await produce(node, version, Compression.ZSTD)).error_code == code
        assert node.partition("t").log.log_end_offset == (code is ErrorCode.NONE)
        assert (await produce(node, version, Compression.LZ4)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [4, 9, 10])
@on_loop
async def test_zstd_records_are_fetched_in_every_version(tmp_path: Path, version: int) -> None:
    """Apache Kafka 4 no longer rejects versions before 10, as KIP-110 specified."""
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t", 1, configs={"compression.type": "zstd"}))
        await produce(node, 9, Compression.NONE)
        answer = await fetch(node, version)
        assert answer.error_code == ErrorCode.NONE
        [header] = [header for _, header in iterate_headers(memoryview(answer.records))]
        assert header.attributes & COMPRESSION_MASK == Compression.ZSTD
