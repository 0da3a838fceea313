"""What this broker's parts tell Prometheus, gathered from their own numbers at each scrape."""

from barnabas.api.context import Node
from barnabas.log.compaction.cleaner import LogCleaner
from barnabas.log.imports.importer import Replacements
from barnabas.log.log_manager import LogManager
from barnabas.net.connections import Connections
from barnabas.policy.policies import Policies
from barnabas.server.audit_publisher import AuditPublisher
from barnabas.server.coordinator_metrics import coordinator_metrics
from barnabas.server.coordinators import Coordinators
from barnabas.server.listeners import Listeners
from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry, Values, request_metrics
from barnabas.telemetry.names import MetricName
from barnabas.telemetry.process import process_metrics
from barnabas.telemetry.requests import RequestStatistics


def metrics_registry(
    node: Node,
    statistics: RequestStatistics,
    connections: Connections,
    listeners: Listeners,
    directories: LogManager,
    cleaner: LogCleaner,
    replacements: Replacements,
    coordinators: Coordinators,
    audit: AuditPublisher,
) -> MetricsRegistry:
    """Every metric of one broker."""
    registry = MetricsRegistry()
    request_metrics(registry, statistics, {key: api.name for key, api in node.apis.items()})
    process_metrics(registry)
    registry.add_metric(
        names.CONNECTIONS, lambda: [({"listener": k}, n) for k, n in connections.by_listener().items()]
    )
    registry.add_metric(names.LOGINS, lambda: _logins(listeners))
    sessions = node.fetch_sessions
    registry.add_metric(names.FETCH_SESSIONS, lambda: [({}, sessions.statistics()["sessions_count"])])
    registry.add_metric(names.PARTITIONS, lambda: [({}, node.replicas.statistics()["partitions_count"])])
    registry.add_metric(names.PARTITION_LEADERS, lambda: [({}, node.replicas.statistics()["leaders_count"])])
    registry.add_metric(names.FLUSHES, lambda: [({}, node.flusher.flushes_count)])
    registry.add_metric(names.METADATA_REVISION, lambda: [({}, node.image.revision)])
    registry.add_metric(names.AUDIT_EVENTS, lambda: [({}, audit.statistics()["events_count"])])
    registry.add_metric(names.AUDIT_WAITING, lambda: [({}, audit.statistics()["waiting_count"])])
    _cleaner_metrics(registry, cleaner)
    registry.add_metric(names.REPLACEMENTS_ADOPTED, lambda: [({}, replacements.adopted_count)])
    registry.add_metric(names.REPLACEMENTS_REFUSED, lambda: [({}, replacements.refused_count)])
    coordinator_metrics(registry, coordinators)
    _policy_metrics(registry, node.policies)
    quotas, telemetry = node.quotas, node.client_telemetry
    registry.add_metric(names.THROTTLED, lambda: [({}, quotas.throttled_count)])
    registry.add_metric(names.REFUSED_CONNECTIONS, lambda: [({}, quotas.refused_connections_count)])
    registry.add_metric(names.CLIENT_INSTANCES, lambda: [({}, telemetry.statistics()["instances_count"])])
    registry.add_metric(names.CLIENT_GAUGE, telemetry.metrics.gauges)
    registry.add_metric(names.CLIENT_SUM, telemetry.metrics.sums)
    registry.add_metric(names.CLIENT_DROPPED, lambda: [({}, telemetry.metrics.dropped_count)])
    _log_metric(registry, names.LOG_SIZE, directories, "size_bytes")
    _log_metric(registry, names.LOG_START_OFFSET, directories, "log_start_offset")
    _log_metric(registry, names.LOG_END_OFFSET, directories, "log_end_offset")
    _log_metric(registry, names.HIGH_WATERMARK, directories, "high_watermark")
    return registry


def _logins(listeners: Listeners) -> Values:
    return [
        ({"listener": listener, "mechanism": mechanism, "outcome": outcome.value}, count)
        for (listener, mechanism, outcome), count in listeners.logins.items()
    ]


def _cleaner_metrics(registry: MetricsRegistry, cleaner: LogCleaner) -> None:
    registry.add_metric(names.CLEANER_READ, lambda: [({}, cleaner.read_bytes)])
    registry.add_metric(names.CLEANER_WRITTEN, lambda: [({}, cleaner.written_bytes)])
    registry.add_metric(names.CLEANER_MAX_DIRTY, lambda: [({}, 100 * cleaner.max_dirty_ratio)])
    registry.add_metric(names.CLEANER_LAST_CLEAN, lambda: [({}, cleaner.last_clean_ms / 1000)])
    registry.add_metric(names.CLEANER_IDLE, lambda: [({}, cleaner.idle_ms / 1000)])
    registry.add_metric(names.CLEANER_LAST_LOOK, lambda: [({}, cleaner.time_since_last_check_ms / 1000)])
    registry.add_metric(names.CLEANER_MAX_OVERDUE, lambda: [({}, cleaner.max_overdue_ms / 1000)])
    registry.add_metric(names.CLEANER_TABLE_USE, lambda: [({}, 100 * cleaner.last_table_use)])
    registry.add_metric(names.CLEANER_COMPACTED, lambda: [({}, cleaner.cleaned_count)])
    registry.add_metric(names.CLEANER_FAILURES, lambda: [({}, cleaner.failures_count)])
    registry.add_metric(names.CLEANER_UNCLEANABLE, lambda: [({}, len(cleaner.uncleanable))])
    registry.add_metric(
        names.CLEANER_UNCLEANABLE_BYTES,
        lambda: [({}, sum(each.log.size_bytes for each in cleaner.uncleanable))],
    )


def _policy_metrics(registry: MetricsRegistry, policies: Policies) -> None:
    def collect(outcomes: dict[str, str]) -> Values:
        counts = policies.statistics()
        return [({"outcome": outcome}, counts[name]) for outcome, name in outcomes.items()]

    checks = {
        "asked": "checks_count",
        "refused": "refusals_count",
        "failed": "failures_count",
        "warned": "warnings_count",
    }
    reloads = {"done": "reloads_count", "failed": "failed_reloads_count"}
    registry.add_metric(names.POLICY_CHECKS, lambda: collect(checks))
    registry.add_metric(names.POLICY_RELOADS, lambda: collect(reloads))


def _log_metric(
    registry: MetricsRegistry, metric: MetricName, directories: LogManager, attribute: str
) -> None:
    def collect() -> Values:
        for name, log in directories.logs.items():
            yield {"topic": name.topic, "partition": str(name.partition)}, getattr(log, attribute)

    registry.add_metric(metric, collect)
