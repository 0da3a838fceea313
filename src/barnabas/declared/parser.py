"""Reads a declared state from YAML, strictly; errors name file, line, key, value and what would be right."""

import io
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from barnabas.base.yaml_nodes import YamlError, YamlNode, read_yaml, read_yaml_text
from barnabas.config.keys.broker import BROKER_KEYS as BROKER_CONFIGS
from barnabas.declared.state import (
    PRUNABLE,
    Configs,
    Credential,
    Credentials,
    DeclaredBroker,
    DeclaredState,
    DeclaredTopic,
    Entity,
    Quotas,
    SecretRef,
    Section,
    Setting,
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
#: The name of the default resource of all brokers.
EVERY_BROKER = "default"
TOPIC_KEYS = ("partitions", "replication_factor", "configs")
BROKER_KEYS = ("configs", "expect")
CONFIG_RESOURCE_KEYS = ("configs",)
CREDENTIAL_KEYS = ("iterations", "password")
_BROKER_ID = re.compile("0|[1-9][0-9]{0,9}")
QUOTA_KEYS = ("entity", "values")
ENTITY_TYPES = ("user", "client-id", "ip")
SECRET_ORIGINS = ("env", "file")
ACL_KEYS = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operations",
    "permission",
)

RESOURCE_TYPES = tuple(each.name.lower() for each in ResourceType if each > ResourceType.ANY)
PATTERN_TYPES = ("literal", "prefixed")
OPERATIONS = tuple(each.name.lower() for each in AclOperation if each > AclOperation.ANY)
PERMISSIONS = ("allow", "deny")

#: Kafka's bounds (KIP-554).
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
#: Bounds of the request's fields.
PARTITIONS_MAX, REPLICAS_MAX = 2**31 - 1, 2**15 - 1

#: Keys whose values brokers hide.
_SECRET_KEYS = tuple(key for key, definition in BROKER_CONFIGS.items() if definition.sensitive)


class StateFileError(ValueError):
    """An invalid state file."""


def read_state(path: Path) -> DeclaredState:
    """The state that a file declares.

    :raises StateFileError: With file, line, key, value and what would be right.
    """
    try:
        return read_yaml(path, _state)
    except YamlError as error:
        message = f"{path}: {error}"
        raise StateFileError(message) from None


def read_state_text(text: str, *, trusted: bool = True) -> DeclaredState:
    """The state that a text declares; untrusted text is bounded (`read_yaml_text`).

    :raises StateFileError: With line, key, value and what would be right.
    """
    try:
        return read_yaml_text(text, _state, trusted=trusted)
    except YamlError as error:
        raise StateFileError(str(error)) from None


def _state(node: YamlNode) -> DeclaredState:
    found = node.mapping((PRUNE, *Section))
    get = found.get
    return DeclaredState(
        topics={name: _topic(each) for name, each in _named(get(Section.TOPICS))},
        acls=frozenset(chain.from_iterable(map(_acls, _items(get(Section.ACLS))))),
        quotas=_quotas(_items(get(Section.QUOTAS))),
        users={name: _credentials(each) for name, each in _named(get(Section.USERS))},
        groups={name: _config_resource(each) for name, each in _named(get(Section.GROUPS))},
        brokers=dict(map(_broker, _named(get(Section.BROKERS)))),
        client_metrics={name: _config_resource(each) for name, each in _named(get(Section.CLIENT_METRICS))},
        prune=frozenset(each.word(PRUNABLE) for each in _items(get(PRUNE))),
    )


def _items(node: YamlNode | None) -> list[YamlNode]:
    return [] if node is None else node.items()


def _named(node: YamlNode | None) -> Iterable[tuple[str, YamlNode]]:
    return () if node is None else node.mapping().items()


def _topic(node: YamlNode) -> DeclaredTopic:
    if node.is_null:
        return DeclaredTopic()
    found = node.mapping(TOPIC_KEYS)
    return DeclaredTopic(
        partitions=found["partitions"].whole(1, PARTITIONS_MAX) if "partitions" in found else None,
        replication_factor=found["replication_factor"].whole(1, REPLICAS_MAX)
        if "replication_factor" in found
        else None,
        configs=_configs(found["configs"]) if "configs" in found else {},
    )


def _config_resource(node: YamlNode) -> Configs:
    found = node.mapping(CONFIG_RESOURCE_KEYS)
    return _configs(found["configs"]) if "configs" in found else {}


def _broker(item: tuple[str, YamlNode]) -> tuple[str, DeclaredBroker]:
    name, node = item
    if name != EVERY_BROKER and not _BROKER_ID.fullmatch(name):
        node.fail(f"a broker is named by its id, or {EVERY_BROKER} for every broker")
    found = node.mapping(BROKER_KEYS)
    if "expect" in found and name == EVERY_BROKER:
        found["expect"].fail("is said of one broker: name it by its id")
    configs = _broker_configs(found["configs"]) if "configs" in found else {}
    expected = _expected(found["expect"]) if "expect" in found else {}
    return ("" if name == EVERY_BROKER else name), DeclaredBroker(configs, expected)


def _configs(node: YamlNode) -> dict[str, Setting]:
    return {key: _setting(each) for key, each in node.mapping().items()}


def _setting(node: YamlNode) -> Setting:
    tag = node.node.tag
    return _secret(node) if tag.endswith(":map") else _value(node)


def _broker_configs(node: YamlNode) -> dict[str, Setting]:
    """Values that a broker would hide must be references, so that they stand neither in the file nor in a plan."""
    for key, each in node.mapping().items():
        if not each.is_null and _is_secret(key):
            _secret(each)
    return _configs(node)


def _is_secret(key: str) -> bool:
    """Keys with a listener's prefix count, too: `listener.name.external.ssl.key.password`."""
    return any(key == each or key.endswith(f".{each}") for each in _SECRET_KEYS)


def _expected(node: YamlNode) -> dict[str, str | None]:
    return {key: _value(each) for key, each in node.mapping().items()}


def _value(node: YamlNode) -> str | None:
    """A value as text; a list as Kafka writes it."""
    if node.is_null:
        return None
    if node.node.tag.endswith(":seq"):
        return ",".join(item.text() for item in node.items())
    if node.node.tag.endswith(":map"):
        node.fail("must be text, a number, true, false or a list")
    return node.text().lower() if node.node.tag.endswith(":bool") else node.text()


def _secret(node: YamlNode) -> SecretRef:
    expected = "a secret is said by where it is: {env: NAME} or {file: PATH}"
    if not node.node.tag.endswith(":map"):
        raise YamlError(f"{node.path}: {expected}, never by itself", node.line)
    found = node.mapping(SECRET_ORIGINS)
    if len(found) != 1:
        node.fail(expected)
    [(origin, name)] = found.items()
    return SecretRef(origin, name.text())


# ACLs


def _acls(node: YamlNode) -> list[AclBinding]:
    found = node.mapping(ACL_KEYS)
    for key in ("resource_type", "principal", "operations"):
        if key not in found:
            node.fail(f"must have {key}")
    resource_type = ResourceType[_word(found["resource_type"], RESOURCE_TYPES)]
    principal = found["principal"].text()
    if ":" not in principal:
        found["principal"].fail("must have a type, as User:alice")
    pattern = found.get("pattern_type")
    permission = found.get("permission")
    name = _resource_name(node, found.get("resource_name"), resource_type)
    return [
        AclBinding(
            resource_type,
            name,
            PatternType[_word(pattern, PATTERN_TYPES)] if pattern else PatternType.LITERAL,
            principal,
            found["host"].text() if "host" in found else WILDCARD,
            AclOperation[_word(operation, OPERATIONS)],
            AclPermission[_word(permission, PERMISSIONS)] if permission else AclPermission.ALLOW,
        )
        for operation in found["operations"].items()
    ]


def acls_of(entry: Mapping[str, Any]) -> frozenset[AclBinding]:
    """The ACLs of an entry."""
    return frozenset(_acls(_position(entry)))


def entity_of(entity: Mapping[str, Any]) -> Entity:
    """The entity of a quota entry."""
    return _entity(_position(entity))


def _position(value: Any) -> YamlNode:
    return YamlNode(yaml.SafeDumper(io.StringIO()).represent_data(value), "")


def _resource_name(node: YamlNode, name: YamlNode | None, resource_type: ResourceType) -> str:
    if name is not None:
        text = name.text()
        if not text:
            name.fail("must name a resource or, where prefixed, how names begin; * stands for every one")
        if resource_type is ResourceType.CLUSTER and text != CLUSTER_NAME:
            name.fail(f"must be {CLUSTER_NAME}, or left out")
        return text
    if resource_type is not ResourceType.CLUSTER:
        node.fail("must have resource_name; * stands for every one")
    return CLUSTER_NAME


def _word(node: YamlNode, valid: Collection[str]) -> str:
    return node.word(valid).upper()


# Quotas and users


def _quotas(items: Iterable[YamlNode]) -> dict[Entity, Quotas]:
    quotas: dict[Entity, Quotas] = {}
    for item in items:
        found = item.mapping(QUOTA_KEYS)
        for key in QUOTA_KEYS:
            if key not in found:
                item.fail(f"must have {key}")
        entity = _entity(found["entity"])
        if entity in quotas:
            found["entity"].fail("comes twice")
        quotas[entity] = {key: _quota(each) for key, each in found["values"].mapping().items()}
    return quotas


def _entity(node: YamlNode) -> Entity:
    parts = node.mapping(ENTITY_TYPES)
    if not parts or ("ip" in parts and len(parts) > 1):
        node.fail("must name user, client-id, both, or ip alone; null as a name stands for the default")
    return tuple(sorted((kind, None if each.is_null else each.text()) for kind, each in parts.items()))


def _quota(node: YamlNode) -> float | None:
    return (
        None
        if node.is_null
        else float(node.number("must be a number written out, as 1000000, or null for none"))
    )


def _credentials(node: YamlNode) -> Credentials:
    found = _mapping_beside_secrets(node, MECHANISMS_BY_TITLE)
    if not found:
        node.fail(f"must say how the user logs in: {' or '.join(MECHANISMS_BY_TITLE)}")
    return {MECHANISMS_BY_TITLE[title]: _credential(each) for title, each in found.items()}


def _mapping_beside_secrets(node: YamlNode, known: Collection[str]) -> dict[str, YamlNode]:
    """A scalar where a mapping is expected may be a password: the error does not show it."""
    if not isinstance(node.node, yaml.MappingNode):
        expected = f"must be a mapping (key: value) of {' or '.join(known)}"
        raise YamlError(f"{node.path}: {expected}", node.line)
    return node.mapping(known)


def _credential(node: YamlNode) -> Credential:
    found = _mapping_beside_secrets(node, CREDENTIAL_KEYS)
    bounds = ITERATIONS_MIN, ITERATIONS_MAX
    iterations = found["iterations"].whole(*bounds) if "iterations" in found else None
    return Credential(iterations, _secret(found["password"]) if "password" in found else None)
