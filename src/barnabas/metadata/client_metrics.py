"""Client metrics subscriptions of the image, and the clients that they select (KIP-714)."""

import re
from collections.abc import Mapping

from barnabas.base.clock import Clock
from barnabas.config.client_metrics import effective_client_metrics_values
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.telemetry import names
from barnabas.telemetry.client_instances import ClientInstances, Subscription
from barnabas.telemetry.client_metrics import ClientMetrics
from barnabas.telemetry.metrics import MetricsRegistry


def subscription_of(overrides: Mapping[str, str]) -> Subscription:
    """Return the subscription that configs describe, which were checked before they were stored."""
    values = effective_client_metrics_values(overrides)
    metrics, interval_ms, match = values["metrics"], values["interval.ms"], values["match"]
    assert isinstance(metrics, tuple), metrics
    assert isinstance(interval_ms, int), interval_ms
    assert isinstance(match, tuple), match
    entries = (entry.partition("=") for entry in match)
    patterns = {attribute.strip(): re.compile(pattern.strip()) for attribute, _, pattern in entries}
    return Subscription(metrics, interval_ms, patterns)


class ClientTelemetry:
    """Subscriptions, which follow the image, with the clients and their metrics."""

    def __init__(self, clock: Clock) -> None:
        self.metrics = ClientMetrics()
        self.instances = ClientInstances(clock.monotonic_ms, self.metrics.remove)

    def load(self, image: MetadataImage) -> None:
        self.instances.subscribe(
            [subscription_of(overrides) for _, overrides in sorted(image.client_metrics_configs.items())]
        )

    async def apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        """Apply one commit; a listener of `MetadataWriter`."""
        if after.client_metrics_configs is not before.client_metrics_configs:
            self.load(after)

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(
            names.CLIENT_INSTANCES, lambda: [({}, self.instances.statistics()["instances_count"])]
        )
        registry.add_metric(names.CLIENT_GAUGE, self.metrics.gauges)
        registry.add_metric(names.CLIENT_SUM, self.metrics.sums)
        registry.add_metric(names.CLIENT_DROPPED, lambda: [({}, self.metrics.dropped_count)])

    def statistics(self) -> dict[str, int]:
        return self.instances.statistics() | self.metrics.statistics()
