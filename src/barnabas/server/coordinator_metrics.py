"""Prometheus metrics of the coordinators: those of Apache Kafka under other names (docs/metrics.md)."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from barnabas.coordinator.counts import CoordinatorCounts
from barnabas.coordinator.runner import ShardState
from barnabas.coordinator.runtime import CoordinatorRuntime, Totals
from barnabas.groups.classic.states import ClassicState
from barnabas.groups.consumer.group import GroupState
from barnabas.groups.rebalance_history import EventKind, RebalanceHistory
from barnabas.groups.shard import GroupShard
from barnabas.groups.statistics import GroupCounts
from barnabas.server.coordinators import Coordinators
from barnabas.telemetry import names
from barnabas.telemetry.metrics import Labels, MetricsRegistry, Values
from barnabas.telemetry.names import MetricName
from barnabas.transactions.shard import TransactionShard
from barnabas.transactions.states import TransactionState

Collected = Mapping[MetricName, Values]

#: The states of metrics; the others are final.
_SHARD_STATES = (ShardState.LOADING, ShardState.ACTIVE, ShardState.FAILED)
_GROUP_STATES = {
    "classic": [state.value for state in ClassicState if state is not ClassicState.DEAD],
    "consumer": [state.value for state in GroupState],
}
_TRANSACTION_STATES = [state.value for state in TransactionState if state is not TransactionState.DEAD]


def coordinator_metrics(registry: MetricsRegistry, coordinators: Coordinators) -> None:
    """Register the metrics of the coordinators; each scrape visits every shard once."""
    groups, transactions, sender = coordinators.groups, coordinators.transactions, coordinators.marker_sender
    registry.add_together(_OF_COORDINATORS, lambda: _by_coordinator(group=groups, transaction=transactions))
    registry.add_together(_OF_GROUPS, lambda: _groups(groups))
    registry.add_together(_OF_GROUP_COUNTS, lambda: _group_counts(coordinators.group_counts))
    registry.add_together(_OF_REBALANCES, lambda: _rebalances(coordinators.rebalances))
    registry.add_metric(names.TRANSACTIONAL_IDS, lambda: _transactional_ids(transactions))
    counts = coordinators.transaction_counts
    _add_numbers(
        registry,
        {
            names.TRANSACTIONAL_IDS_EXPIRED: lambda: counts.expired_ids_count,
            names.TRANSACTIONS_TIMED_OUT: lambda: counts.timed_out_count,
            names.TRANSACTIONS_ENDING: lambda: sender.ending_count,
            names.MARKERS_WAITING: lambda: sender.waiting_count,
            names.MARKER_RETRIES: lambda: sender.retries_count,
        },
    )


def _add_numbers(registry: MetricsRegistry, numbers: Mapping[MetricName, Callable[[], int]]) -> None:
    for metric, number in numbers.items():
        registry.add_metric(metric, partial(_single, number))


def _single(number: Callable[[], int]) -> Values:
    return [({}, number())]


_OF_COORDINATORS = (
    names.COORDINATOR_PARTITIONS,
    names.COORDINATOR_LOADS,
    names.COORDINATOR_LOAD_SECONDS,
    names.COORDINATOR_MAX_LOAD,
    names.COORDINATOR_PENDING,
    names.COORDINATOR_TIMERS,
    names.COORDINATOR_BATCHES,
    names.COORDINATOR_RECORDS,
    names.COORDINATOR_REFUSED,
    names.COORDINATOR_WAITS,
    names.COORDINATOR_WAIT_SECONDS,
)


def _by_coordinator(**coordinators: CoordinatorRuntime[Any]) -> Collected:
    values: dict[MetricName, list[tuple[Labels, float]]] = {metric: [] for metric in _OF_COORDINATORS}
    for name, coordinator in coordinators.items():
        totals = coordinator.totals()
        for state in _SHARD_STATES:
            labels = {"coordinator": name, "state": state.value.lower()}
            values[names.COORDINATOR_PARTITIONS].append((labels, totals.shards[state]))
        for metric, number in _numbers(totals, coordinator.counts).items():
            values[metric].append(({"coordinator": name}, number))
    return values


def _numbers(totals: Totals, counts: CoordinatorCounts) -> Mapping[MetricName, float]:
    return {
        names.COORDINATOR_LOADS: counts.loads_count,
        names.COORDINATOR_LOAD_SECONDS: counts.load_ms / 1000,
        names.COORDINATOR_MAX_LOAD: totals.load_ms_max / 1000,
        names.COORDINATOR_PENDING: totals.pending_count,
        names.COORDINATOR_TIMERS: totals.timers_count,
        names.COORDINATOR_BATCHES: counts.batches_count,
        names.COORDINATOR_RECORDS: counts.records_count,
        names.COORDINATOR_REFUSED: counts.refused_appends_count,
        names.COORDINATOR_WAITS: counts.waits_count,
        names.COORDINATOR_WAIT_SECONDS: counts.wait_ms / 1000,
    }


_OF_GROUPS = (names.GROUPS, names.GROUP_MEMBERS, names.GROUP_OFFSETS, names.GROUP_PENDING_OFFSETS)


def _groups(coordinator: CoordinatorRuntime[GroupShard]) -> Collected:
    shards = [shard.statistics() for shard in coordinator.shards]
    states: dict[str, Counter[str]] = {"classic": Counter(), "consumer": Counter()}
    for shard in shards:
        states["classic"].update(shard["classic_groups"])
        states["consumer"].update(shard["consumer_groups"])
    return {
        names.GROUPS: [
            ({"protocol": protocol, "state": state}, states[protocol][state])
            for protocol, possible in _GROUP_STATES.items()
            for state in possible
        ],
        names.GROUP_MEMBERS: [
            ({"protocol": "classic"}, sum(shard["classic_members_count"] for shard in shards)),
            ({"protocol": "consumer"}, sum(shard["consumer_members_count"] for shard in shards)),
        ],
        names.GROUP_OFFSETS: [({}, sum(shard["offsets_count"] for shard in shards))],
        names.GROUP_PENDING_OFFSETS: [({}, sum(shard["pending_offsets_count"] for shard in shards))],
    }


_OF_GROUP_COUNTS = (
    names.GROUP_REBALANCES,
    names.OFFSET_COMMITS,
    names.OFFSET_EXPIRATIONS,
    names.OFFSET_DELETIONS,
)


def _group_counts(counts: GroupCounts) -> Collected:
    return {
        names.GROUP_REBALANCES: [
            ({"protocol": "classic"}, counts.classic_rebalances_count),
            ({"protocol": "consumer"}, counts.consumer_rebalances_count),
        ],
        names.OFFSET_COMMITS: [({}, counts.offset_commits_count)],
        names.OFFSET_EXPIRATIONS: [({}, counts.offset_expirations_count)],
        names.OFFSET_DELETIONS: [({}, counts.offset_deletions_count)],
    }


_OF_REBALANCES = (
    names.GROUP_REBALANCE_CAUSES,
    names.GROUP_REBALANCES_COMPLETED,
    names.GROUP_REBALANCE_SECONDS,
)


def _rebalances(history: RebalanceHistory) -> Collected:
    return {
        names.GROUP_REBALANCE_CAUSES: [
            ({"protocol": protocol, "cause": kind.value}, history.started[protocol, kind])
            for protocol in _GROUP_STATES
            for kind in EventKind
        ],
        names.GROUP_REBALANCES_COMPLETED: [
            ({"protocol": protocol}, history.completed[protocol]) for protocol in _GROUP_STATES
        ],
        names.GROUP_REBALANCE_SECONDS: [
            ({"protocol": protocol}, history.completed_ms[protocol] / 1000) for protocol in _GROUP_STATES
        ],
    }


def _transactional_ids(coordinator: CoordinatorRuntime[TransactionShard]) -> Values:
    states: Counter[str] = Counter()
    for shard in coordinator.shards:
        states.update(shard.statistics()["transactional_ids"])
    return [({"state": state}, states[state]) for state in _TRANSACTION_STATES]
