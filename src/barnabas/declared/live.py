"""Reads the state of a live cluster over the Kafka protocol: the whole state, or the names in a file."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import ConfigEntry
from barnabas.client.core import metadata
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.declared.state import (
    CONFIG_SECTIONS,
    CONFIGS,
    EVERYTHING,
    KEPT_SECRET,
    BrokerState,
    ClusterState,
    Configs,
    Credential,
    Credentials,
    ResourceFilter,
    Section,
    Setting,
    TopicState,
)
from barnabas.wire.acls import AclBinding
from barnabas.wire.errors import ErrorCode, KafkaError

#: Resources per request, so that responses stay below a few MB.
BATCH = 500

ItemT = TypeVar("ItemT")

CLEANUP_POLICY = "cleanup.policy"

#: Prefix of Kafka's internal topics.
_INTERNAL_PREFIX = "__"
#: Config sources of values that were set for the resource itself.
_OWN_SOURCE = {
    ResourceKind.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceKind.GROUP: ConfigSource.GROUP_CONFIG,
    ResourceKind.CLIENT_METRICS: ConfigSource.CLIENT_METRICS_CONFIG,
}


def batches(items: Iterable[ItemT], size: int = BATCH) -> Iterator[list[ItemT]]:
    """Yield the items in batches."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


async def whole_state(admin: Admin, resource_filter: ResourceFilter = EVERYTHING) -> ClusterState:
    """Return the settings of a cluster: only values that differ from the defaults, and no internal topics.

    :raises KafkaError: The error of a request that the cluster refused.
    """
    return resource_filter.apply(await _StateReader(admin, resource_filter.sections).state())


async def live_state_for(admin: Admin, declared: ClusterState) -> ClusterState:
    """Return the live state of the names that a file mentions; all names in sections that are pruned.

    :raises KafkaError: The error of a request that the cluster refused.
    """
    return await _StateReader(admin, declared.sections, declared).state()


def is_internal(topic: metadata.TopicInfo) -> bool:
    return topic.is_internal or topic.name.startswith(_INTERNAL_PREFIX)


@dataclass(frozen=True)
class _StateReader:
    """Reads the state of the names in `declared`; None reads everything."""

    admin: Admin
    sections: frozenset[Section]
    declared: ClusterState | None = None

    async def state(self) -> ClusterState:
        has = self.sections.__contains__
        return ClusterState(
            topics=await self._topics() if has(Section.TOPICS) else {},
            acls=await self._acls() if has(Section.ACLS) else frozenset(),
            quotas=await self.admin.describe_client_quotas() if has(Section.QUOTAS) else {},
            users=await self._users() if has(Section.USERS) else {},
            groups=await self._config_resources(Section.GROUPS) if has(Section.GROUPS) else {},
            brokers=await self._brokers() if has(Section.BROKERS) else {},
            client_metrics=await self._config_resources(Section.CLIENT_METRICS)
            if has(Section.CLIENT_METRICS)
            else {},
        )

    def _takes_all(self, section: Section) -> bool:
        return self.declared is None or section in self.declared.prune

    def _names(self, section: Section) -> Collection[str]:
        return () if self.declared is None else getattr(self.declared, section)

    async def _topics(self) -> dict[str, TopicState]:
        everything = self._takes_all(Section.TOPICS)
        declared = self._names(Section.TOPICS)
        described = await self.admin.describe_topics(None if everything else declared)
        topics = dict(_readable(described))
        names = [
            name
            for name, topic in topics.items()
            if name in declared or (everything and not is_internal(topic))
        ]
        detailed = names if self.declared is None else [name for name in names if name in declared]
        configs = await self._topic_configs(detailed)
        return {name: _topic(topics[name], configs.get(name, {})) for name in names}

    async def _topic_configs(self, names: Sequence[str]) -> dict[str, Configs]:
        """Return the configs set for each topic; topics that were deleted meanwhile have none."""
        kind = ResourceKind.TOPIC
        configs: dict[str, Configs] = {}
        for batch in batches(names):
            resources = [Resource(kind, name) for name in batch]
            described = await self.admin.describe_configs(resources, self._keys(batch), synonyms=False)
            for resource, entries in described.items():
                if not isinstance(entries, KafkaError):
                    configs[resource.name] = _own(entries, _OWN_SOURCE[kind])
                elif entries.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise entries
        return configs

    def _keys(self, names: Iterable[str]) -> set[str] | None:
        """Return the keys that are declared for any of the names, and keys that the checks need; None for all keys."""
        if self.declared is None or CONFIGS in self.declared.prune:
            return None
        return {CLEANUP_POLICY}.union(*(self.declared.topics[name].configs for name in names))

    async def _config_resources(self, section: Section) -> dict[str, Configs]:
        """Return the groups or client metrics that have configs, and those that are declared."""
        names = set(self._names(section))
        if self._takes_all(section):
            names |= await self._listed(CONFIG_SECTIONS[section])
        configs: dict[str, Configs] = {}
        for batch in batches(sorted(names)):
            resources = [Resource(CONFIG_SECTIONS[section], name) for name in batch]
            described = await self.admin.describe_configs(resources, synonyms=False)
            for resource, entries in described.items():
                if isinstance(entries, KafkaError):
                    raise entries
                configs[resource.name] = _own(entries, _OWN_SOURCE[resource.kind])
        return {name: each for name, each in configs.items() if each}

    async def _listed(self, kind: ResourceKind) -> set[str]:
        """Return the names; none from brokers without ListConfigResources (before 4.1)."""
        try:
            return {resource.name for resource in await self.admin.list_config_resources([kind])}
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            return set()

    async def _acls(self) -> frozenset[AclBinding]:
        """Return the ACLs; none from a cluster without an authorizer."""
        try:
            return frozenset(await self.admin.describe_acls())
        except KafkaError as error:
            if error.code is not ErrorCode.SECURITY_DISABLED:
                raise
            return frozenset()

    async def _users(self) -> dict[str, Credentials]:
        described = await self.admin.describe_user_scram_credentials()
        return {
            name: {mechanism: Credential(iterations) for mechanism, iterations in credentials.items()}
            for name, credentials in described.items()
            if not isinstance(credentials, KafkaError)
        }

    async def _brokers(self) -> dict[str, BrokerState]:
        """Return the brokers with dynamic configs, and those with expected values."""
        known = {EVERY_BROKER, *map(str, self.admin.cluster.metadata.nodes)}
        names = known if self._takes_all(Section.BROKERS) else known & set(self._names(Section.BROKERS))
        resources = [Resource(ResourceKind.BROKER, name) for name in sorted(names)]
        brokers: dict[str, BrokerState] = {}
        for resource, entries in (await self.admin.describe_configs(resources)).items():
            if isinstance(entries, KafkaError):
                raise entries
            brokers[resource.name] = self._broker(resource.name, entries)
        return {name: broker for name, broker in brokers.items() if broker != BrokerState()}

    def _broker(self, name: str, entries: Sequence[ConfigEntry]) -> BrokerState:
        is_own = _is_of_broker if name else _is_of_every_broker
        configs = {entry.name: _setting(entry) for entry in entries if is_own(entry)}
        declared = self.declared.brokers.get(name) if self.declared else None
        wanted = declared.expected if declared else {}
        expected = {entry.name: entry.value for entry in entries if entry.name in wanted}
        return BrokerState(configs, expected)


def _readable(
    described: Mapping[str, metadata.TopicInfo | KafkaError],
) -> Iterator[tuple[str, metadata.TopicInfo]]:
    """Yield the topics that exist. An error is raised for a topic that may not be described, so that it does not count
    as missing.
    """
    for name, topic in described.items():
        if isinstance(topic, metadata.TopicInfo):
            yield name, topic
        elif topic.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise KafkaError(topic.code, f"no permission to describe topic '{name}'")


def _topic(topic: metadata.TopicInfo, configs: Configs) -> TopicState:
    factor = max((len(partition.replicas) for partition in topic.partitions), default=0)
    return TopicState(len(topic.partitions), factor, configs)


def _own(entries: Iterable[ConfigEntry], source: ConfigSource) -> Configs:
    return {entry.name: _setting(entry) for entry in entries if entry.source is source}


def _setting(entry: ConfigEntry) -> Setting:
    return KEPT_SECRET if entry.sensitive else entry.value


def _is_set(source: ConfigSource) -> Callable[[ConfigEntry], bool]:
    """Whether the key itself is set, and not only a synonym of it."""
    return lambda entry: any(
        synonym.name == entry.name and synonym.source is source for synonym in entry.synonyms
    )


_is_of_broker = _is_set(ConfigSource.DYNAMIC_BROKER_CONFIG)
_is_of_every_broker = _is_set(ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
