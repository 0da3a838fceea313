import asyncio
from random import Random

import pytest

from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.coordinators import KeyType, ask_coordinator
from barnabas.client.core.retry import Retry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from unit.client.fake_broker import NODE_ID, FakeBroker

GONE = 9


def ask(*coordinators: int, timeout_ms: int = 30_000) -> int:
    """Ask the coordinators one after another, of which GONE is no broker; return the one that answered."""

    async def run() -> int:
        retry = Retry(first_ms=1, pause_ms_max=1, timeout_ms=timeout_ms, random=Random(1))
        found = iter(coordinators)
        async with FakeBroker() as broker:
            broker.serve(
                FindCoordinatorRequest,
                lambda _: FindCoordinatorResponse(coordinators=[Coordinator(node_id=next(found))]),
            )
            async with ClusterClient(broker.bootstrap, retry=retry) as cluster:

                async def send(node: int) -> int:
                    response: MetadataResponse = await cluster.send(MetadataRequest(topics=[]), node)
                    return response.controller_id

                return await ask_coordinator(cluster, KeyType.GROUP, "g", send)

    return asyncio.run(run())


def test_a_coordinator_that_has_left_the_cluster_is_looked_up_again() -> None:
    assert ask(GONE, GONE, NODE_ID) == NODE_ID


def test_a_coordinator_that_stays_away_is_not_available() -> None:
    with pytest.raises(KafkaError, match="no broker with node id 9") as raised:
        ask(GONE, timeout_ms=0)
    assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
