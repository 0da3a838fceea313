"""The controller compares the metadata of all live brokers with its own."""

import asyncio

from barnabas.client.admin.extensions.cluster_status import (
    MetadataState,
    compare_metadata,
    parse_status_response,
)
from barnabas.client.core.errors import BrokerConnectionError
from barnabas.metadata.broker_lifecycle import controller_id
from barnabas.metadata.partition_change_builder import brokers_up
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.broker_client import BrokerClient
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.barnabas_messages.describe_cluster_status import DescribeClusterStatusRequest
from barnabas.wire.errors import KafkaError

COMPARISON_INTERVAL_MS = 60_000

_log = get_logger("barnabas.metadata")


class MetadataComparison:
    """Runs on every broker, and compares on the controller."""

    def __init__(self, broker_id: int, metadata: MetadataWriter, client: BrokerClient) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._client = client
        self.different: frozenset[int] = frozenset()  #: the brokers with different metadata
        self.comparisons_count = 0

    async def compare(self) -> None:
        """Compare with each other live broker that responds, and log a difference when it appears."""
        image = self._metadata.image
        others = sorted(brokers_up(image) - {self._broker_id})
        if not others or controller_id(image) != self._broker_id:
            self.different = frozenset()
            return
        states = dict(zip(others, await asyncio.gather(*map(self._state_of, others)), strict=True))
        different = frozenset(
            broker_id for broker_id, state in states.items() if state is MetadataState.DIFFERENT
        )
        for broker_id in sorted(different - self.different):
            _log.error("a broker has different metadata at the same revision", broker_id=broker_id)
        self.different = different
        self.comparisons_count += 1

    async def _state_of(self, broker_id: int) -> MetadataState:
        try:
            response = await self._client.send(broker_id, DescribeClusterStatusRequest(include_load=False))
            hashes = parse_status_response(response).hashes
        except (BrokerConnectionError, KafkaError):
            return MetadataState.UNKNOWN
        return compare_metadata(self._metadata.recent_hashes, hashes)

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.METADATA_DIFFERENT, lambda: [({}, len(self.different))])

    def statistics(self) -> dict[str, int]:
        return {"different_count": len(self.different), "comparisons_count": self.comparisons_count}
