"""Client metrics subscriptions of the image, and the clients that they are for (KIP-714)."""

import re
from collections.abc import Mapping

from barnabas.base.clock import Clock
from barnabas.config.client_metrics import effective_client_metrics_values
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreChange
from barnabas.telemetry import names
from barnabas.telemetry.client_instances import ClientInstances, Subscription
from barnabas.telemetry.client_metrics import ClientMetrics
from barnabas.telemetry.metrics import MetricsRegistry


def subscription_of(overrides: Mapping[str, str]) -> Subscription:
    """A subscription as its configs describe it; they were checked before they were stored."""
    values = effective_client_metrics_values(overrides)
    metrics, interval_ms, match = values["metrics"], values["interval.ms"], values["match"]
    assert isinstance(metrics, tuple), metrics
    assert isinstance(interval_ms, int), interval_ms
    assert isinstance(match, tuple), match
    entries = (entry.partition("=") for entry in match)
    patterns = {attribute.strip(): re.compile(pattern.strip()) for attribute, _, pattern in entries}
    return Subscription(metrics, interval_ms, patterns)


class ClientTelemetry:
    """Follows the image: who is asked for what, and what they have told."""

    def __init__(self, clock: Clock) -> None:
        self.metrics = ClientMetrics()
        self.instances = ClientInstances(clock.monotonic_ms, self.metrics.remove)

    def load(self, image: MetadataImage) -> None:
        """Take over the subscriptions of an image."""
        self.instances.subscribe(
            [subscription_of(overrides) for _, overrides in sorted(image.client_metrics_configs.items())]
        )

    async def apply(
        self, before: MetadataImage, after: MetadataImage, changes: tuple[StoreChange, ...]
    ) -> None:
        """Follow one commit: a listener of the metadata writer."""
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
        """Clients, subscriptions and series."""
        return self.instances.statistics() | self.metrics.statistics()
