"""The state that a file declares or that a cluster has: topics, ACLs, quotas, users, configs.

A declared state leaves open what it does not mention; a live state contains what was requested.
"""

import enum
import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from barnabas.base.resource_names import HIDDEN, quota_resource, resource_name
from barnabas.config.config_resource import ResourceKind
from barnabas.wire.acls import AclBinding, PatternType
from barnabas.wire.scram import ScramMechanism

#: (type, name) of each part, by type; None means the default.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]


class Section(enum.StrEnum):
    """The sections of a file, in order."""

    TOPICS = "topics"
    ACLS = "acls"
    QUOTAS = "quotas"
    USERS = "users"
    GROUPS = "groups"
    BROKERS = "brokers"
    CLIENT_METRICS = "client_metrics"


#: A word that `prune` accepts beside section names: undeclared config keys of declared resources.
CONFIGS = "configs"
PRUNABLE = (*Section, CONFIGS)

#: Sections of resources that have only configs, with their resource types.
CONFIG_SECTIONS: Mapping[Section, ResourceKind] = {
    Section.TOPICS: ResourceKind.TOPIC,
    Section.GROUPS: ResourceKind.GROUP,
    Section.BROKERS: ResourceKind.BROKER,
    Section.CLIENT_METRICS: ResourceKind.CLIENT_METRICS,
}


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A reference to a value stored elsewhere: `origin` is `env` or `file`; both fields are empty where a broker
    hides it.
    """

    origin: str = ""
    name: str = ""

    def __str__(self) -> str:
        return HIDDEN


KEPT_SECRET = SecretRef()

#: A config's value as text; None stands for the default: no value of its own.
Setting: TypeAlias = str | SecretRef | None
Configs: TypeAlias = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class TopicState:
    """None means an undeclared value: the broker's default for a new topic, any value for an existing one."""

    partitions: int | None = None
    replication_factor: int | None = None
    configs: Configs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Credential:
    """A user's credential; brokers do not return its password."""

    iterations: int | None = None
    password: SecretRef | None = None


@dataclass(frozen=True, slots=True)
class BrokerState:
    """Dynamic configs of a broker, and effective values that are expected of it."""

    configs: Configs = field(default_factory=dict)
    expected: Mapping[str, str | None] = field(default_factory=dict)


Quotas: TypeAlias = Mapping[str, float | None]
Credentials: TypeAlias = Mapping[ScramMechanism, Credential]


@dataclass(frozen=True)
class ClusterState:
    """Resources by name or entity; a broker without a name means all brokers. `prune` holds words of
    `PRUNABLE`.
    """

    topics: Mapping[str, TopicState] = field(default_factory=dict)
    acls: frozenset[AclBinding] = frozenset()
    quotas: Mapping[Entity, Quotas] = field(default_factory=dict)
    users: Mapping[str, Credentials] = field(default_factory=dict)
    groups: Mapping[str, Configs] = field(default_factory=dict)
    brokers: Mapping[str, BrokerState] = field(default_factory=dict)
    client_metrics: Mapping[str, Configs] = field(default_factory=dict)
    prune: frozenset[str] = frozenset()

    @property
    def sections(self) -> frozenset[Section]:
        """The sections that are not empty."""
        return frozenset(section for section in Section if getattr(self, section) or section in self.prune)


def acl_resource(acl: AclBinding) -> str:
    """Return the name of the resource of an ACL: `topic/orders`, or `topic/ord*`."""
    prefixed = acl.pattern_type is PatternType.PREFIXED
    return resource_name(acl.resource_type.name, acl.resource_name, prefixed=prefixed)


def name_of(section: Section, key: object) -> str:
    """Return the resource's name as in the audit, the command line and the console."""
    if isinstance(key, AclBinding):
        return acl_resource(key)
    if section is Section.QUOTAS:
        assert isinstance(key, tuple)
        return quota_resource(key)
    kind = CONFIG_SECTIONS[section].name if section in CONFIG_SECTIONS else "user"
    return resource_name(kind, str(key))


@dataclass(frozen=True)
class ResourceFilter:
    """A selection of resources: patterns of names as `topic/orders*` (none: all), and sections."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    sections: frozenset[Section] = frozenset(Section)

    def matches(self, section: Section, key: object) -> bool:
        """Whether the resource is selected."""
        if section not in self.sections:
            return False
        if not (self.include or self.exclude):
            return True
        name = name_of(section, key)
        return (not self.include or _matches(name, self.include)) and not _matches(name, self.exclude)

    def apply(self, state: ClusterState) -> ClusterState:
        """Return the selected part of a state."""
        selected: dict[str, Any] = {
            section: _selected(getattr(state, section), self._matcher(section)) for section in Section
        }
        prune = frozenset(word for word in state.prune if word == CONFIGS or word in self.sections)
        return ClusterState(**selected, prune=prune)

    def _matcher(self, section: Section) -> Callable[[object], bool]:
        return lambda key: self.matches(section, key)


EVERYTHING = ResourceFilter()


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _selected(items: object, test: Callable[[object], bool]) -> object:
    if isinstance(items, frozenset):
        return frozenset(filter(test, items))
    assert isinstance(items, Mapping)
    return {key: value for key, value in items.items() if test(key)}
