"""The state that a file declares, or that a cluster has: topics, ACLs, quotas, users, configurations.

What is not mentioned is left alone: a declared state tells about some things, a live one about those it was asked for.
"""

import enum
import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from barnabas.base.resource_names import quota_resource, resource_name
from barnabas.config.config_resource import ResourceKind
from barnabas.wire.acls import AclBinding, PatternType
from barnabas.wire.scram import ScramMechanism

#: (type, name) of each part, by type; None stands for the default.
Entity: TypeAlias = tuple[tuple[str, str | None], ...]


class Section(enum.StrEnum):
    """The parts of a file, in the order in which it is written."""

    TOPICS = "topics"
    ACLS = "acls"
    QUOTAS = "quotas"
    USERS = "users"
    GROUPS = "groups"
    BROKERS = "brokers"
    CLIENT_METRICS = "client_metrics"


#: What `prune` may name beside sections: keys of the configs of what is declared.
CONFIGS = "configs"
PRUNABLE = (*Section, CONFIGS)

#: Sections of bearers of configs alone, with the kind of resource that they are.
CONFIG_SECTIONS: Mapping[Section, ResourceKind] = {
    Section.TOPICS: ResourceKind.TOPIC,
    Section.GROUPS: ResourceKind.GROUP,
    Section.BROKERS: ResourceKind.BROKER,
    Section.CLIENT_METRICS: ResourceKind.CLIENT_METRICS,
}

HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True)
class SecretRef:
    """A value that is kept elsewhere: `origin` is `env` or `file`; both empty where a broker keeps it to itself."""

    origin: str = ""
    name: str = ""

    def __str__(self) -> str:
        return HIDDEN


KEPT_SECRET = SecretRef()

#: A config's value as text; None stands for the default, which is to have no value of its own.
Setting: TypeAlias = str | SecretRef | None
Configs: TypeAlias = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """None stands for what is not said: the broker's default for a new topic, whatever it is for another."""

    partitions: int | None = None
    replication_factor: int | None = None
    configs: Configs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Credential:
    """How a user logs in; its password is a secret of which a cluster tells nothing."""

    iterations: int | None = None
    password: SecretRef | None = None


@dataclass(frozen=True, slots=True)
class DeclaredBroker:
    """Dynamic configs of a broker, and values that it is expected to have for whatever reason."""

    configs: Configs = field(default_factory=dict)
    expected: Mapping[str, str | None] = field(default_factory=dict)


Quotas: TypeAlias = Mapping[str, float | None]
Credentials: TypeAlias = Mapping[ScramMechanism, Credential]


@dataclass(frozen=True)
class DeclaredState:
    """By name, or entity; a broker without a name stands for every broker. `prune` holds words of `PRUNABLE`."""

    topics: Mapping[str, DeclaredTopic] = field(default_factory=dict)
    acls: frozenset[AclBinding] = frozenset()
    quotas: Mapping[Entity, Quotas] = field(default_factory=dict)
    users: Mapping[str, Credentials] = field(default_factory=dict)
    groups: Mapping[str, Configs] = field(default_factory=dict)
    brokers: Mapping[str, DeclaredBroker] = field(default_factory=dict)
    client_metrics: Mapping[str, Configs] = field(default_factory=dict)
    prune: frozenset[str] = frozenset()

    @property
    def sections(self) -> frozenset[Section]:
        """Those of which anything is said."""
        return frozenset(each for each in Section if getattr(self, each) or each in self.prune)


def acl_resource(acl: AclBinding) -> str:
    """The name of what an ACL covers: `topic/orders`, or `topic/ord*`."""
    prefixed = acl.pattern_type is PatternType.PREFIXED
    return resource_name(acl.resource_type.name, acl.resource_name, prefixed=prefixed)


def name_of(section: Section, key: object) -> str:
    """The name of a thing as the audit, the command line and the console give it."""
    if isinstance(key, AclBinding):
        return acl_resource(key)
    if section is Section.QUOTAS:
        assert isinstance(key, tuple)
        return quota_resource(key)
    kind = CONFIG_SECTIONS[section].name if section in CONFIG_SECTIONS else "user"
    return resource_name(kind, str(key))


@dataclass(frozen=True)
class Choice:
    """Which things are meant: patterns of names, as `topic/orders*`; none means all. And which sections."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    sections: frozenset[Section] = frozenset(Section)

    def means(self, section: Section, key: object) -> bool:
        """Whether a thing is one of them."""
        if section not in self.sections:
            return False
        if not (self.include or self.exclude):
            return True
        name = name_of(section, key)
        return (not self.include or _matches(name, self.include)) and not _matches(name, self.exclude)

    def of(self, state: DeclaredState) -> DeclaredState:
        """What of a state is meant."""
        chosen: dict[str, Any] = {
            section: _chosen(getattr(state, section), self._test(section)) for section in Section
        }
        prune = frozenset(each for each in state.prune if each == CONFIGS or each in self.sections)
        return DeclaredState(**chosen, prune=prune)

    def _test(self, section: Section) -> Callable[[object], bool]:
        return lambda key: self.means(section, key)


EVERYTHING = Choice()


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _chosen(items: object, test: Callable[[object], bool]) -> object:
    if isinstance(items, frozenset):
        return frozenset(filter(test, items))
    assert isinstance(items, Mapping)
    return {key: value for key, value in items.items() if test(key)}
