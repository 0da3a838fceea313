"""Spans of a request and of the work for it."""

import asyncio
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from barnabas.base.ids import uuid_to_text
from barnabas.telemetry.tracing import Tracer
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.schema import Message
from support.batches import batch
from support.images import new_topic
from support.loop import in_virtual_time, on_loop, turns
from support.nodes import RunningNode, frame_of, running_node


def produce_request(*topics: str) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=bytes(batch(b"v")))]
    return ProduceRequest(
        acks=-1,
        timeout_ms=1,
        topic_data=[TopicProduceData(name=name, partition_data=data) for name in topics],
    )


def fetch_request(topic: str) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return FetchRequest(
        max_wait_ms=60_000, min_bytes=1, max_bytes=1000, topics=[FetchTopic(topic=topic, partitions=[asked])]
    )


def traced(node: RunningNode) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    node.broker.tracer = Tracer.opentelemetry(exporter, node.clock)
    return exporter


def family(node: RunningNode, exporter: InMemorySpanExporter) -> list[tuple[str | None, str]]:
    """Return each span's name prefixed with its parent's."""
    node.broker.tracer.close()
    spans: tuple[ReadableSpan, ...] = exporter.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans}
    return [(span.parent and names[span.parent.span_id], span.name) for span in spans]


async def send(node: RunningNode, request: Message, version: int) -> None:
    assert await node.send(frame_of(request, version))


@on_loop
async def test_each_append_is_a_child_of_its_request(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"), new_topic("b"))
        exporter = traced(node)
        await send(node, produce_request("a", "b"), 12)
        await send(node, MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 12)
        assert family(node, exporter) == [
            ("Produce", "barnabas.produce.append"),
            ("Produce", "barnabas.produce.append"),
            (None, "Produce"),
            ("Metadata", "barnabas.metadata"),
            (None, "Metadata"),
        ]
        produce = exporter.get_finished_spans()[2]
        assert dict(produce.attributes or {}) == {
            "api_key": 0,
            "api_version": 12,
            "correlation_id": 7,
            "client_id": "test",
            "client_host": "client",
            "principal": "User:ANONYMOUS",
        }


@on_loop
async def test_work_is_described_by_span_attributes(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        exporter = traced(node)
        topic = CreatableTopic(name="a", num_partitions=2, replication_factor=1)
        await send(node, CreateTopicsRequest(topics=[topic]), 7)
        topic_id = uuid_to_text(node.topic_id("a"))
        await send(node, produce_request("a"), 12)
        await send(node, fetch_request("a"), 12)
        named = [MetadataRequestTopic(name="a")]
        await send(node, MetadataRequest(topics=named, allow_auto_topic_creation=False), 12)
        await send(node, DeleteTopicsRequest([DeleteTopicState(name="a")], [], 5000), 6)
        node.broker.tracer.close()
        attributes = {
            span.name: dict(span.attributes or {}) for span in exporter.get_finished_spans() if span.parent
        }
        assert attributes == {
            "barnabas.topic.create": {"topic": "a", "topic_id": topic_id, "partition_count": 2},
            "barnabas.produce.append": {"topic": "a", "partition": 0, "record_count": 1, "base_offset": 0},
            "barnabas.fetch.read": {
                "topic": "a",
                "partition": 0,
                "fetch_offset": 0,
                "returned_count": 1,
                "high_watermark": 1,
            },
            "barnabas.metadata": {"topics": "a", "auto_create": False},
            "barnabas.topic.delete": {"topic": "a"},
        }


@on_loop
async def test_a_request_of_one_step_has_one_span(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        exporter = traced(node)
        for request in (ListOffsetsRequest(), DescribeConfigsRequest(), AlterConfigsRequest()):
            await send(node, request, 2)
        assert family(node, exporter) == [
            (None, "ListOffsets"),
            (None, "DescribeConfigs"),
            (None, "AlterConfigs"),
        ]


@in_virtual_time
async def test_concurrent_requests_keep_their_spans_apart(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        exporter = traced(node)
        waiting = asyncio.create_task(send(node, fetch_request("a"), 12))
        await turns(2)
        await send(node, produce_request("a"), 12)
        await waiting
        assert family(node, exporter) == [
            ("Produce", "barnabas.produce.append"),
            (None, "Produce"),
            ("Fetch", "barnabas.fetch.read"),
            (None, "Fetch"),
        ]


@in_virtual_time
async def test_a_cancelled_request_ends_its_span(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("a"))
        exporter = traced(node)
        waiting = asyncio.create_task(send(node, fetch_request("a"), 12))
        await turns(2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert family(node, exporter) == [(None, "Fetch")]
