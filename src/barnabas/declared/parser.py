"""Reads a declared state from YAML, strictly; errors name file, line, key, value and what would be right."""

import io
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from barnabas.base.yaml_nodes import YamlError, YamlNode, read_yaml, read_yaml_text
from barnabas.base.yaml_schema import (
    SECRET_REFERENCE,
    TEXT,
    ByKind,
    Custom,
    Key,
    Keyed,
    MappingOf,
    Nullable,
    Numeric,
    Schema,
    SequenceOf,
    Text,
    Whole,
    Word,
    by_name,
    either,
    word,
)
from barnabas.config.config_resource import EVERY_BROKER
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.declared.state import (
    PRUNABLE,
    BrokerState,
    ClusterState,
    Configs,
    Credential,
    Entity,
    Quotas,
    SecretRef,
    Section,
    Setting,
    TopicState,
)
from barnabas.wire.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from barnabas.wire.scram import MECHANISMS_BY_TITLE

PRUNE = "prune"
#: What a file calls the default resource of all brokers.
EVERY_BROKER_WORD = "default"

#: Kafka's bounds (KIP-554).
_ITERATIONS_MIN, _ITERATIONS_MAX = 4096, 16384
#: Bounds of the request's fields.
_PARTITIONS_MAX, _REPLICAS_MAX = 2**31 - 1, 2**15 - 1

#: Keys whose values brokers hide.
_SECRET_KEYS = tuple(key for key, definition in BROKER_KEYS.items() if definition.sensitive)


class StateFileError(ValueError):
    """An invalid state file."""


def read_state(path: Path) -> ClusterState:
    """Return the state that a file declares.

    :raises StateFileError: With file, line, key, value and what would be right.
    """
    try:
        return read_yaml(path, STATE.read)
    except YamlError as error:
        message = f"{path}: {error}"
        raise StateFileError(message) from None


def read_state_text(text: str, *, trusted: bool = True) -> ClusterState:
    """Return the state that a text declares; untrusted text is bounded (`read_yaml_text`).

    :raises StateFileError: With line, key, value and what would be right.
    """
    try:
        return read_yaml_text(text, STATE.read, trusted=trusted)
    except YamlError as error:
        raise StateFileError(str(error)) from None


def acls_of(entry: Mapping[str, Any]) -> frozenset[AclBinding]:
    """Return the ACLs of an entry."""
    return frozenset(ACL.read(_position(entry)))


def entity_of(entity: Mapping[str, Any]) -> Entity:
    """Return the entity of a quota entry."""
    return ENTITY.read(_position(entity))


def _position(value: Any) -> YamlNode:
    return YamlNode(yaml.SafeDumper(io.StringIO()).represent_data(value), "")


# Configs


def _scalar(node: YamlNode) -> str | None:
    """Return a value as text, as Kafka writes it."""
    if node.is_null:
        return None
    if not isinstance(node.node, yaml.ScalarNode):
        node.fail("must be text, a number, true, false or a list")
    return node.text() if node.boolean is None else node.text().lower()


def _broker_configs(node: YamlNode) -> Configs:
    """Require references for values that a broker would hide, so that they stand neither in the file nor in a plan."""
    return {
        key: (_SECRET_OR_DEFAULT if _is_secret(key) else SETTING).read(each)
        for key, each in node.mapping().items()
    }


def _is_secret(key: str) -> bool:
    """Return whether brokers hide the key, also with a listener's prefix: `listener.name.external.ssl.key.password`."""
    return any(key == each or key.endswith(f".{each}") for each in _SECRET_KEYS)


SCALAR = Custom(_scalar)
_LIST: Schema[str] = SequenceOf(TEXT).to(",".join)
SECRET = SECRET_REFERENCE.to(lambda reference: SecretRef(*reference))
_SECRET_OR_DEFAULT = Nullable[Setting](SECRET, None)
#: A value that is not a secret.
VALUE = ByKind(SCALAR, sequence=_LIST)
SETTING: Schema[Setting] = ByKind[Setting](SCALAR, sequence=_LIST, mapping=SECRET)

TOPIC_CONFIGS = MappingOf(SETTING)
BROKER_CONFIGS = Custom(_broker_configs)
GROUP_CONFIGS = MappingOf(SETTING)
CLIENT_METRICS_CONFIGS = MappingOf(SETTING)

TOPIC = Keyed(
    TopicState,
    {
        "partitions": Whole(1, _PARTITIONS_MAX),
        "replication_factor": Whole(1, _REPLICAS_MAX),
        "configs": TOPIC_CONFIGS,
    },
)


def _broker(broker: BrokerState, node: YamlNode) -> BrokerState:
    expected = node.mapping().get("expect")
    if expected is not None and node.key == EVERY_BROKER_WORD:
        expected.fail(f"applies to a single broker: use its id instead of '{EVERY_BROKER_WORD}'")
    return broker


BROKER = Keyed(
    BrokerState,
    {"configs": BROKER_CONFIGS, "expect": Key(MappingOf(VALUE), into="expected")},
).then(_broker)
BROKER_NAME = Text(
    f"0|[1-9][0-9]{{0,9}}|{EVERY_BROKER_WORD}",
    f"must be a broker's id, or {EVERY_BROKER_WORD} for every broker",
)


def _configs(configs: Mapping[str, Setting] = {}) -> Configs:
    return configs


# ACLs


_NO_NAME = "must be the name of a resource, its beginning if pattern_type is prefixed, or * for all"


class _AclEntry(NamedTuple):
    resource_type: ResourceType
    principal: str
    operations: list[AclOperation]
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.LITERAL
    host: str = WILDCARD
    permission: AclPermission = AclPermission.ALLOW


def _acls(entry: _AclEntry, node: YamlNode) -> list[AclBinding]:
    is_cluster = entry.resource_type is ResourceType.CLUSTER
    name = CLUSTER_NAME if is_cluster and entry.resource_name is None else entry.resource_name
    if name is None:
        node.fail("must have resource_name; * for all")
    if not name:
        node.at("resource_name").fail(_NO_NAME)
    if is_cluster and name != CLUSTER_NAME:
        node.at("resource_name").fail(f"must be {CLUSTER_NAME}, or left out")
    about = entry.resource_type, name, entry.pattern_type, entry.principal, entry.host
    return [AclBinding(*about, operation, entry.permission) for operation in entry.operations]


ACL = Keyed(
    _AclEntry,
    {
        "resource_type": Key(
            Word(by_name(each for each in ResourceType if each > ResourceType.ANY)), required=True
        ),
        "resource_name": TEXT,
        "pattern_type": Word(by_name((PatternType.LITERAL, PatternType.PREFIXED))),
        "principal": Key(Text(r"[^:]*:[\s\S]*", "must have a type, as User:alice"), required=True),
        "host": TEXT,
        "operations": Key(
            SequenceOf(Word(by_name(each for each in AclOperation if each > AclOperation.ANY))), required=True
        ),
        "permission": Word(by_name((AclPermission.ALLOW, AclPermission.DENY))),
    },
).then(_acls)


# Quotas and users


class _QuotaEntry(NamedTuple):
    entity: Entity
    values: Quotas


def _entity(parts: dict[str, str | None], node: YamlNode) -> Entity:
    if not parts or ("ip" in parts and len(parts) > 1):
        node.fail("must name user, client-id, both, or ip alone; null as a name stands for the default")
    return tuple(sorted(parts.items()))


ENTITY = MappingOf(Nullable(TEXT, None), known=("user", "client-id", "ip")).then(_entity)
_QUOTA_VALUE = Numeric("must be a plain number such as 1000000, or null for no quota").to(float)
QUOTA_VALUES = MappingOf(Nullable[float | None](_QUOTA_VALUE, None))
QUOTA = Keyed(
    _QuotaEntry,
    {
        "entity": Key(ENTITY, required=True),
        "values": Key(QUOTA_VALUES, required=True),
    },
)

CREDENTIAL = Keyed(
    Credential,
    {"iterations": Whole(_ITERATIONS_MIN, _ITERATIONS_MAX), "password": SECRET},
    instead="must be a mapping (key: value) of iterations or password",
)
_MECHANISMS = either(MECHANISMS_BY_TITLE)
CREDENTIALS = MappingOf(
    CREDENTIAL,
    known=MECHANISMS_BY_TITLE,
    empty=f"must contain a mechanism: {_MECHANISMS}",
    instead=f"must be a mapping (key: value) of {_MECHANISMS}",
).to(lambda found: {MECHANISMS_BY_TITLE[title]: each for title, each in found.items()})

STATE = Keyed(
    ClusterState,
    {
        PRUNE: SequenceOf(word(*map(str, PRUNABLE))).to(frozenset),
        Section.TOPICS: MappingOf(Nullable(TOPIC, TopicState())),
        Section.ACLS: SequenceOf(ACL).to(lambda entries: frozenset(chain.from_iterable(entries))),
        Section.QUOTAS: SequenceOf(QUOTA, distinct="entity").to(dict),
        Section.USERS: MappingOf(CREDENTIALS),
        Section.GROUPS: MappingOf(Keyed(_configs, {"configs": GROUP_CONFIGS})),
        Section.BROKERS: MappingOf(BROKER, name=BROKER_NAME).to(
            lambda brokers: {
                EVERY_BROKER if name == EVERY_BROKER_WORD else name: each for name, each in brokers.items()
            }
        ),
        Section.CLIENT_METRICS: MappingOf(Keyed(_configs, {"configs": CLIENT_METRICS_CONFIGS})),
    },
)
