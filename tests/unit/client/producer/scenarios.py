"""Scenarios of a producer with a fake broker."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.retry import Retry
from barnabas.client.producer.producer import Producer
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.records.batch import read_header
from barnabas.wire.schema import Versions
from unit.client.fake_broker import FakeBroker

Scenario = Callable[[FakeBroker, ClusterClient], Awaitable[None]]


def play(scenario: Scenario, partitions: int = 1, versions: dict[Any, Versions] | None = None) -> None:
    """Run a scenario with a broker that has topic "t" and a cluster that retries without real pauses."""

    async def run() -> None:
        async with FakeBroker(versions) as broker:
            broker.create("t", partitions)
            retry = Retry(first_ms=1, pause_ms_max=1, random=Random(1))
            async with ClusterClient(broker.bootstrap, retry=retry) as cluster:
                await asyncio.wait_for(scenario(broker, cluster), 20)

    asyncio.run(run())


@asynccontextmanager
async def watched(producer: Producer) -> AsyncIterator[Producer]:
    """Yield a producer that must have nothing pending when it is closed."""
    async with producer:
        yield producer
    assert producer._accumulator.size_bytes == 0


def refused(code: ErrorCode, **fields: Any) -> Callable[[Any], ProduceResponse]:
    def answer(request: Any) -> ProduceResponse:
        responses = []
        for topic in request.topic_data:
            partitions = [
                PartitionProduceResponse(index=each.index, error_code=code, **fields)
                for each in topic.partition_data
            ]
            named = TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=partitions
            )
            responses.append(named)
        return ProduceResponse(responses=responses)

    return answer


def headers(broker: FakeBroker) -> list[Any]:
    """Return the batch headers of every attempt, in order."""
    return [
        read_header(partition.records)
        for request in broker.received(ProduceRequest)
        for topic in request.topic_data
        for partition in topic.partition_data
    ]
