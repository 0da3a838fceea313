"""Drift: how a cluster differs from a declared state, from another cluster, or from its own earlier state."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from barnabas.base.clock import Clock
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import ConfigEntry
from barnabas.client.core.metadata import Node
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.declared.diff import ResourceChange, as_json, diff_states, shown
from barnabas.declared.live import whole_state
from barnabas.declared.plan import PlanRequest, compare_with_live
from barnabas.declared.state import PRUNABLE, BrokerState, ClusterState, ResourceFilter, Section
from barnabas.wire.errors import KafkaError

#: Keys that differ between any two brokers.
OWN_KEYS = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "broker.rack",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
    }
)

Find: TypeAlias = Callable[[], Awaitable[Sequence[ResourceChange]]]


class DriftEvent(NamedTuple):
    """A difference that appeared or disappeared; `at_ms` since the epoch."""

    at_ms: int
    has_come: bool
    change: ResourceChange

    def as_json(self) -> dict[str, Any]:
        return {
            "time": self.at_ms,
            "event": "drift" if self.has_come else "resolved",
            **drift_json(self.change),
        }


def drift_json(change: ResourceChange) -> dict[str, Any]:
    """Return a difference for programs: the declared and the actual value."""
    change_json = as_json(change)
    return {
        "resource": change_json["resource"],
        "key": change_json["key"],
        "declared": shown(change.after),
        "found": shown(change.before),
    }


async def from_declared(admin: Admin, request: PlanRequest) -> list[ResourceChange]:
    """Return the differences of a cluster from the declared state: `before` is the actual value, `after` the declared
    one.
    """
    return (await compare_with_live(admin, request)).differences


async def from_other(admin: Admin, other: Admin, resource_filter: ResourceFilter) -> list[ResourceChange]:
    """Return the differences in the settings of two clusters, and the effective values of brokers with the same id."""
    expected, actual = await whole_state(other, resource_filter), await whole_state(admin, resource_filter)
    if Section.BROKERS in resource_filter.sections:
        nodes = set(map(_id_of, admin.cluster.metadata.nodes.values()))
        both = nodes & set(map(_id_of, other.cluster.metadata.nodes.values()))
        expected, actual = (
            await _with_values(other, expected, both, resource_filter),
            await _with_values(admin, actual, both, resource_filter),
        )
        expected, actual = _in_common(expected, actual), _in_common(actual, expected)
    return diff_states(replace(expected, prune=frozenset(PRUNABLE)), actual)


def _id_of(node: Node) -> str:
    return str(node.node_id)


async def _with_values(
    admin: Admin, state: ClusterState, names: set[str], resource_filter: ResourceFilter
) -> ClusterState:
    """Return the state with the effective values of its brokers, static values and defaults included."""
    resources = [
        Resource(ResourceKind.BROKER, name)
        for name in sorted(names)
        if resource_filter.matches(Section.BROKERS, name)
    ]
    brokers = dict(state.brokers)
    for resource, entries in (await admin.describe_configs(resources)).items():
        if isinstance(entries, KafkaError):
            raise entries
        configs = brokers.get(resource.name, BrokerState()).configs
        brokers[resource.name] = BrokerState(configs, _values(entries, configs))
    return replace(state, brokers=brokers)


def _values(entries: Sequence[ConfigEntry], configs: Mapping[str, object]) -> dict[str, str | None]:
    return {
        entry.name: entry.value
        for entry in entries
        if not entry.sensitive and entry.name not in OWN_KEYS and entry.name not in configs
    }


def _in_common(state: ClusterState, other: ClusterState) -> ClusterState:
    """Return the state without keys that only one of them knows: these belong to another version, or to another
    Kafka.
    """
    brokers = {
        name: BrokerState(
            broker.configs, _shared(broker.expected, other.brokers.get(name, BrokerState()).expected)
        )
        for name, broker in state.brokers.items()
    }
    return replace(state, brokers=brokers)


def _shared(values: Mapping[str, str | None], others: Mapping[str, str | None]) -> dict[str, str | None]:
    return {key: value for key, value in values.items() if key in others}


async def watched(
    find: Find, clock: Clock, pause: Callable[[], Awaitable[object]]
) -> AsyncIterator[DriftEvent]:
    """Yield every difference when it appears, changes or disappears; compares again after each pause."""
    previous: dict[Any, ResourceChange] = {}
    while True:
        current = {each.resource_key: each for each in await find()}
        now_ms = clock.wall_ms()
        for key, change in current.items():
            before = previous.get(key)
            if before is None or (before.before, before.after) != (change.before, change.after):
                yield DriftEvent(now_ms, True, change)
        for key, change in previous.items():
            if key not in current:
                yield DriftEvent(now_ms, False, replace(change, before=change.after))
        previous = current
        await pause()
