"""Responses to clients of old versions, and to those that wait for topics."""

from typing import Any

import pytest

from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.records.compression import Compression
from differential.batches import Batch
from differential.sequences import create, produce, topic
from differential.symbols import Name
from differential.world import World

A: Any = Name("a")
MADE: Any = Name("made")
COLLIDING: Any = Name("c_d")


def metadata_request(*names: Any) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(name=name) for name in names])


@pytest.mark.parametrize("version", [0, 3, 4, 9, 12, 13])
def test_a_topic_that_a_metadata_request_creates_is_in_the_next_response(world: World, version: int) -> None:
    assert world.exchange(*create(topic("c.d"))) == []
    for _ in range(2):
        assert world.exchange(metadata_request(MADE, COLLIDING, "no name"), version) == []
    assert world.exchange(DeleteTopicsRequest(topic_names=[MADE], timeout_ms=10_000), 5) == []
    assert world.exchange(metadata_request(MADE), version) == []


@pytest.mark.parametrize("version", range(4, 12))
def test_records_in_zstd_are_fetched(world: World, version: int) -> None:
    assert world.exchange(*create(topic("a", compression_type="zstd"))) == []
    [step] = produce("a", Batch(compression=Compression.ZSTD))
    assert world.exchange(*step) == []
    topics = [FetchTopic(A, partitions=[FetchPartition(0, partition_max_bytes=1 << 20)])]
    assert world.exchange(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), version) == []


@pytest.mark.parametrize("version", range(3, 8))
def test_records_in_zstd_are_produced_from_version_7_on(world: World, version: int) -> None:
    assert world.exchange(*create(topic("a"))) == []
    [step] = produce("a", Batch(compression=Compression.ZSTD))
    assert world.exchange(step[0], version) == []
