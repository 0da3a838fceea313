"""Compares a declared state with a live one, key by key. Pure.

Resources are named as in the audit: `topic/orders`, key `retention.ms`, before and after.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from barnabas.base.resource_names import HIDDEN
from barnabas.config.config_resource import EVERY_BROKER
from barnabas.config.definition import ConfigError, ConfigKey, Value
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.keys.client_metrics import CLIENT_METRICS_KEYS
from barnabas.config.keys.group import GROUP_KEYS
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.values import parse_type
from barnabas.declared.state import (
    CONFIGS,
    BrokerState,
    ClusterState,
    Configs,
    Credential,
    Credentials,
    Entity,
    Quotas,
    SecretRef,
    Section,
    Setting,
    TopicState,
    name_of,
)
from barnabas.wire.acls import AclBinding

PARTITIONS = "partitions"
REPLICATION_FACTOR = "replication_factor"

#: The value of a new topic's count that the file does not mention.
UNDECLARED_COUNT_TEXT = "broker's default"

#: A resource within its section: a name, an ACL or an entity.
Name: TypeAlias = str | AclBinding | Entity


class ChangeAction(enum.StrEnum):
    """The change of a resource or of one of its keys."""

    CREATE = "create"
    ALTER = "alter"
    DELETE = "delete"
    EXPECT = "expect"  #: a value that only the broker's static configuration can change


class Level(enum.IntEnum):
    """Severity of a diagnostic."""

    NOTE = 0
    WARNING = 1
    DESTRUCTIVE = 2  #: deletes data; needs consent
    LOCKOUT = 3  #: the applicant could not undo it; needs separate consent
    IMPOSSIBLE = 4  #: cannot be applied, or would be rejected


class Diagnostic(NamedTuple):
    """A message about a change, shown before it is made."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """One key of a resource: its value before and after, None for no value."""

    section: Section
    name: Name
    key: str
    action: ChangeAction
    before: Any
    after: Any
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def resource(self) -> str:
        """The resource's name as in the audit."""
        return name_of(self.section, self.name)

    @property
    def resource_key(self) -> tuple[Section, Name, str]:
        """Resource and key, without the values."""
        return self.section, self.name, self.key

    @property
    def level(self) -> Level:
        """The highest level of its diagnostics."""
        return max((diagnostic.level for diagnostic in self.diagnostics), default=Level.NOTE)

    @property
    def is_destructive(self) -> bool:
        """Whether it deletes data; a change that is also a lockout counts."""
        return any(diagnostic.level is Level.DESTRUCTIVE for diagnostic in self.diagnostics)

    @property
    def is_lockout(self) -> bool:
        return any(diagnostic.level is Level.LOCKOUT for diagnostic in self.diagnostics)

    @property
    def is_possible(self) -> bool:
        return self.level is not Level.IMPOSSIBLE and self.action is not ChangeAction.EXPECT


def diff_states(declared: ClusterState, live: ClusterState) -> list[ResourceChange]:
    """Return the changes that turn `live` into the declared state; sections and keys are in order."""
    return [
        *_topics(declared, live),
        *_acls(declared, live),
        *_quotas(declared, live),
        *_users(declared, live),
        *_config_resources(declared, live, Section.GROUPS),
        *_brokers(declared, live),
        *_config_resources(declared, live, Section.CLIENT_METRICS),
    ]


# Configs

_KEYS: Mapping[Section, Mapping[str, ConfigKey]] = MappingProxyType(
    {
        Section.TOPICS: TOPIC_KEYS,
        Section.GROUPS: GROUP_KEYS,
        Section.BROKERS: BROKER_KEYS,
        Section.CLIENT_METRICS: CLIENT_METRICS_KEYS,
    }
)


#: Lists whose order has no meaning.
_POLICIES = ("cleanup.policy", "log.cleanup.policy")


def same_value(section: Section, key: str, one: Setting, other: Setting) -> bool:
    """Whether both texts are the same value for a broker. Secrets count as equal, because brokers hide them."""
    if isinstance(one, SecretRef) or isinstance(other, SecretRef):
        return one is not None and other is not None
    if one is not None and other is not None and key in _POLICIES:
        return set(one.replace(" ", "").split(",")) == set(other.replace(" ", "").split(","))
    return one == other or _parsed(section, key, one) == _parsed(section, key, other)


def _parsed(section: Section, key: str, text: str | None) -> Value:
    definition = _KEYS[section].get(key)
    if definition is None or text is None:
        return text
    try:
        return parse_type(key, definition.type, text)
    except ConfigError:
        return text


def shown_setting(value: Setting) -> str | None:
    """Return the value as text; secrets are hidden."""
    return HIDDEN if isinstance(value, SecretRef) else value


def _config_changes(
    section: Section, name: str, declared: Configs, live: Configs, *, prunes: bool
) -> Iterator[ResourceChange]:
    keys = declared.keys() | live.keys() if prunes else declared.keys()
    for key in sorted(keys):
        before, after = live.get(key), declared.get(key)
        if not same_value(section, key, before, after):
            action = _action(before, after)
            yield ResourceChange(section, name, key, action, before, after)


def _action(before: object, after: object) -> ChangeAction:
    if before is None:
        return ChangeAction.CREATE
    return ChangeAction.DELETE if after is None else ChangeAction.ALTER


# Sections


def _to_prune(section: Section, declared: ClusterState, live: ClusterState) -> Iterable[Any]:
    """Return the live resources that are not declared, if their section is pruned."""
    undeclared = getattr(live, section).keys() - getattr(declared, section).keys()
    return sorted(undeclared) if section in declared.prune else ()


def _topics(declared: ClusterState, live: ClusterState) -> Iterator[ResourceChange]:
    prunes = CONFIGS in declared.prune
    for name, topic in sorted(declared.topics.items()):
        there = live.topics.get(name)
        if there is None:
            yield from _new_topic(name, topic)
            continue
        for key in (PARTITIONS, REPLICATION_FACTOR):
            before, after = getattr(there, key), getattr(topic, key)
            if after is not None and before != after:
                yield ResourceChange(Section.TOPICS, name, key, ChangeAction.ALTER, before, after)
        yield from _config_changes(Section.TOPICS, name, topic.configs, there.configs, prunes=prunes)
    for name in _to_prune(Section.TOPICS, declared, live):
        count = live.topics[name].partitions
        yield ResourceChange(Section.TOPICS, name, PARTITIONS, ChangeAction.DELETE, count, None)


def _new_topic(name: str, topic: TopicState) -> Iterator[ResourceChange]:
    parts: dict[str, Any] = {
        PARTITIONS: topic.partitions or UNDECLARED_COUNT_TEXT,
        REPLICATION_FACTOR: topic.replication_factor or UNDECLARED_COUNT_TEXT,
        **{key: topic.configs[key] for key in sorted(topic.configs)},
    }
    for key, value in parts.items():
        if value is not None:
            yield ResourceChange(Section.TOPICS, name, key, ChangeAction.CREATE, None, value)


def acl_key(acl: AclBinding) -> str:
    """Return the key of an ACL within its resource, as in the audit."""
    return f"acl {acl.principal} {acl.permission.name} {acl.operation.name} from {acl.host}"


def _acls(declared: ClusterState, live: ClusterState) -> Iterator[ResourceChange]:
    for acl in sorted(declared.acls - live.acls):
        yield ResourceChange(Section.ACLS, acl, acl_key(acl), ChangeAction.CREATE, None, True)
    for acl in sorted(live.acls - declared.acls) if Section.ACLS in declared.prune else ():
        yield ResourceChange(Section.ACLS, acl, acl_key(acl), ChangeAction.DELETE, True, None)


def _by_key(
    section: Section, name: Name, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[ResourceChange]:
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old != new:
            action = _action(old, new)
            yield ResourceChange(section, name, key, action, old, new)


def _quotas(declared: ClusterState, live: ClusterState) -> Iterator[ResourceChange]:
    prunes = Section.QUOTAS in declared.prune
    for entity in sorted(declared.quotas, key=_entity_order):
        declared_quotas = declared.quotas[entity]
        there: Quotas = live.quotas.get(entity, {})
        before = {key: value for key, value in there.items() if prunes or key in declared_quotas}
        yield from _by_key(Section.QUOTAS, entity, before, declared_quotas)
    for entity in sorted(live.quotas.keys() - declared.quotas.keys(), key=_entity_order) if prunes else ():
        yield from _by_key(Section.QUOTAS, entity, live.quotas[entity], {})


def _entity_order(entity: Entity) -> str:
    return name_of(Section.QUOTAS, entity)


def _users(declared: ClusterState, live: ClusterState) -> Iterator[ResourceChange]:
    prunes = Section.USERS in declared.prune
    for user, credentials in sorted(declared.users.items()):
        yield from _credentials(user, credentials, live.users.get(user, {}), prunes)
    for user in _to_prune(Section.USERS, declared, live):
        yield from _credentials(user, {}, live.users[user], prunes)


def _credentials(
    user: str, declared: Credentials, live: Credentials, prunes: bool
) -> Iterator[ResourceChange]:
    """Compare iterations only, because brokers do not return passwords."""
    for mechanism in sorted(declared.keys() | (live.keys() if prunes else ())):
        before, after = live.get(mechanism), declared.get(mechanism)
        same = before and after and after.iterations in (None, before.iterations)
        if not same:
            action = _action(before, after)
            yield ResourceChange(Section.USERS, user, mechanism.title, action, before, after)


def _config_resources(
    declared: ClusterState, live: ClusterState, section: Section
) -> Iterator[ResourceChange]:
    declared_resources: Mapping[str, Configs] = getattr(declared, section)
    there: Mapping[str, Configs] = getattr(live, section)
    prunes = bool(declared.prune & {section, CONFIGS})
    for name in sorted(declared_resources):
        yield from _config_changes(
            section, name, declared_resources[name], there.get(name, {}), prunes=prunes
        )
    for name in _to_prune(section, declared, live):
        yield from _config_changes(section, name, {}, there[name], prunes=True)


def _brokers(declared: ClusterState, live: ClusterState) -> Iterator[ResourceChange]:
    prunes = bool(declared.prune & {Section.BROKERS, CONFIGS})
    for name, broker in sorted(declared.brokers.items()):
        there = live.brokers.get(name, BrokerState())
        configs = _prunable(name, there.configs, broker.configs)
        yield from _config_changes(Section.BROKERS, name, broker.configs, configs, prunes=prunes)
        for key, expected in sorted(broker.expected.items()):
            if not same_value(Section.BROKERS, key, there.expected.get(key), expected):
                yield ResourceChange(
                    Section.BROKERS, name, key, ChangeAction.EXPECT, there.expected.get(key), expected
                )
    for name in _to_prune(Section.BROKERS, declared, live):
        configs = _prunable(name, live.brokers[name].configs, {})
        yield from _config_changes(Section.BROKERS, name, {}, configs, prunes=True)


#: Kafka sets it as the default of every broker when leaders may be elected from eligible replicas (KIP-966), and
#: refuses to remove it then.
_KEPT_BY_KAFKA = "min.insync.replicas"


def _prunable(name: str, live: Configs, declared: Configs) -> Configs:
    """Return the live state without what is undeclared and cannot be removed."""
    is_kept = name == EVERY_BROKER and _KEPT_BY_KAFKA not in declared
    return {key: value for key, value in live.items() if not (is_kept and key == _KEPT_BY_KAFKA)}


# As text and as JSON


def shown(value: Any) -> Any:
    """Return a value of a change for JSON, without secrets."""
    if isinstance(value, Credential):
        return {"iterations": value.iterations} if value.iterations else {}
    return shown_setting(value) if isinstance(value, SecretRef) else value


def as_json(change: ResourceChange) -> dict[str, Any]:
    """Return a change as JSON."""
    return {
        "resource": change.resource,
        "key": change.key,
        "action": change.action.value,
        "before": shown(change.before),
        "after": shown(change.after),
        "destructive": change.is_destructive,
        "diagnostics": [
            {"level": diagnostic.level.name.lower(), "text": diagnostic.text}
            for diagnostic in change.diagnostics
        ],
    }
