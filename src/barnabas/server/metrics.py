"""The metrics of a broker. Each part registers its own."""

from barnabas.log.log_metrics import register_log_metrics
from barnabas.server.assembly import BrokerParts
from barnabas.server.coordinator_metrics import coordinator_metrics
from barnabas.telemetry.metrics import MetricsRegistry, request_metrics
from barnabas.telemetry.process import process_metrics


def metrics_registry(parts: BrokerParts) -> MetricsRegistry:
    broker = parts.broker
    registry = MetricsRegistry()
    request_metrics(registry, parts.statistics, {key: api.name for key, api in broker.apis.items()})
    process_metrics(registry)
    coordinator_metrics(registry, parts.coordinators)
    for part in (
        parts.connections,
        parts.listeners,
        broker.fetch_sessions,
        parts.replicas,
        parts.flusher,
        parts.metadata,
        parts.metadata_comparison,
        parts.controller,
        parts.audit,
        parts.security_log,
        parts.cleaner,
        broker.segment_importer,
        broker.policies,
        broker.quotas,
        broker.client_telemetry,
    ):
        part.register_metrics(registry)
    register_log_metrics(registry, parts.log_manager)
    return registry
