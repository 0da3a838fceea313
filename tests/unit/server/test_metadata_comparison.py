from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import BrokerUnreachable
from barnabas.metadata.brokers import SESSIONS
from barnabas.metadata.decision import Decision
from barnabas.metadata.writer import MetadataWriter
from barnabas.server.metadata_comparison import MetadataComparison
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.barnabas_messages.describe_cluster_status import (
    DescribeClusterStatusResponse,
    MetadataHash,
)
from support.images import register_brokers
from support.loop import on_loop
from support.memory_store import MemoryStore


class FakeClient:
    """Answers for the other brokers."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.answers: dict[int, Callable[[], DescribeClusterStatusResponse]] = {}

    async def send(self, broker_id: int, _: Any) -> Any:
        self.asked.append(broker_id)
        if broker_id not in self.answers:
            raise BrokerUnreachable(BrokerAddress("h", 1), "refused")
        return self.answers[broker_id]()


@asynccontextmanager
async def comparing(broker_id: int) -> AsyncIterator[tuple[MetadataComparison, FakeClient, MetadataWriter]]:
    """Yield the comparison of a broker among the live brokers 1, 2 and 3."""
    writer, client = MetadataWriter(MemoryStore()), FakeClient()
    await writer.start()
    for other in (1, 2, 3):
        await register_brokers(writer, other)
        await writer.write(lambda _, number=other: Decision(None, (SESSIONS.put(str(number), 0),)))  # type: ignore[misc]
    yield MetadataComparison(broker_id, writer, client), client, writer  # type: ignore[arg-type]
    await writer.stop()


def metric(comparison: MetadataComparison) -> bytes:
    registry = MetricsRegistry()
    comparison.register_metrics(registry)
    return registry.render().splitlines()[-1]


@on_loop
async def test_the_controller_finds_a_broker_with_different_metadata() -> None:
    async with comparing(1) as (comparison, client, writer):

        def same() -> DescribeClusterStatusResponse:
            return DescribeClusterStatusResponse(
                hashes=[MetadataHash(*each) for each in writer.recent_hashes.items()]
            )

        def different() -> DescribeClusterStatusResponse:
            hashes = [MetadataHash(writer.image.revision, b"different")]
            return DescribeClusterStatusResponse(hashes=hashes)

        client.answers = {2: same, 3: different}
        await comparison.compare()
        assert comparison.different == {3}
        assert metric(comparison) == b"barnabas_metadata_different_brokers 1.0"
        client.answers[3] = same
        await comparison.compare()
        assert comparison.different == frozenset()
        assert metric(comparison) == b"barnabas_metadata_different_brokers 0.0"


@on_loop
async def test_a_broker_that_does_not_respond_is_not_different() -> None:
    async with comparing(1) as (comparison, client, _):
        await comparison.compare()
        assert client.asked == [2, 3]
        assert comparison.statistics() == {"different_count": 0, "comparisons_count": 1}


@on_loop
async def test_only_the_controller_compares() -> None:
    async with comparing(2) as (comparison, client, _):
        await comparison.compare()
        assert (client.asked, comparison.different) == ([], frozenset())
