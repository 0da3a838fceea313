"""Reads the file of `barnabas.policy.file` into rules."""

from collections.abc import Collection, Mapping
from pathlib import Path

from barnabas.base.yaml_nodes import YamlError, YamlNode, read_yaml
from barnabas.policy.interfaces import ConfigResourceType
from barnabas.policy.loading import PolicyLoadError
from barnabas.policy.policies import FILE_KEY
from barnabas.policy.rules import AclRule, Bounds, ConfigRule, ProtectedAction, Rule, Rules
from barnabas.wire.acls import AclOperation, AclPermission, PatternType, ResourceType

#: The known keys by resource type; any key for a type without an entry.
KnownKeys = Mapping[ConfigResourceType, Collection[str]]

_MODES = ("enforce", "warn")
_SECTIONS = {
    "topics": ConfigResourceType.TOPIC,
    "brokers": ConfigResourceType.BROKER,
    "groups": ConfigResourceType.GROUP,
    "client_metrics": ConfigResourceType.CLIENT_METRICS,
}
_COMMON = ("prefix", "mode", "because", "configs", "protected")
_TOPIC_ONLY = ("name", "partitions", "replication_factor")
_CONFIG_KEYS = ("required", "forbidden", "min", "max", "values")
#: The attributes of an ACL, and the words for enumerated ones.
_ACL_WORDS = {
    "resource_type": ResourceType,
    "pattern_type": PatternType,
    "operation": AclOperation,
    "permission": AclPermission,
}
_ACL_TEXTS = ("resource_name", "principal", "host")
#: Words that occur only in filters, or for unknown values.
_NOT_OF_AN_ACL = ("UNKNOWN", "ANY", "MATCH")


def read_rules(path: Path, known_keys: KnownKeys) -> Rules:
    """The rules in a file.

    :raises PolicyLoadError: With line, key, value and what would be right.
    """
    try:
        return read_yaml(path, lambda node: _rules(node, known_keys))
    except YamlError as error:
        raise PolicyLoadError(FILE_KEY, str(path), str(error)) from None


def _rules(node: YamlNode, known_keys: KnownKeys) -> Rules:
    found = node.mapping(("mode", "acls", *_SECTIONS))
    enforced = "mode" not in found or _is_enforced(found["mode"])
    by_type = {
        kind: _section(found[section], enforced, kind, known_keys.get(kind))
        for section, kind in _SECTIONS.items()
        if section in found
    }
    acls = [_acl_rule(item, enforced) for item in found["acls"].items()] if "acls" in found else []
    return Rules(by_type, acls)


def _is_enforced(node: YamlNode) -> bool:
    return node.word(_MODES) == "enforce"


def _section(
    node: YamlNode, enforced: bool, kind: ConfigResourceType, known_keys: Collection[str] | None
) -> list[Rule]:
    rules: dict[str, Rule] = {}
    for item in node.items():
        rule = _rule(item, enforced, kind, known_keys)
        if rule.prefix in rules:
            item.fail(f"the prefix '{rule.prefix}' has a rule already")
        rules[rule.prefix] = rule
    return list(rules.values())


def _rule(
    node: YamlNode, enforced: bool, kind: ConfigResourceType, known_keys: Collection[str] | None
) -> Rule:
    is_topic = kind is ConfigResourceType.TOPIC
    found = node.mapping(_COMMON + (_TOPIC_ONLY if is_topic else ()))
    get = found.get
    return Rule(
        prefix=prefix.text() if (prefix := get("prefix")) else "",
        enforced=_is_enforced(mode) if (mode := get("mode")) else enforced,
        because=because.text() if (because := get("because")) else "",
        pattern=name.pattern() if (name := get("name")) else None,
        partitions=_counts(partitions) if (partitions := get("partitions")) else None,
        replication_factor=_counts(factor) if (factor := get("replication_factor")) else None,
        configs=_configs(configs, known_keys) if (configs := get("configs")) else {},
        protected=_protected(protected, is_topic) if (protected := get("protected")) else None,
    )


def _counts(node: YamlNode) -> Bounds:
    found = node.mapping(("min", "max"))
    return _bounds(node, {key: each.whole(1) for key, each in found.items()})


def _bounds(node: YamlNode, found: Mapping[str, float]) -> Bounds:
    bounds = Bounds(found.get("min"), found.get("max"))
    if bounds.min is not None and bounds.max is not None and bounds.min > bounds.max:
        node.fail(f"min must be at most max, but {bounds.min} is more than {bounds.max}")
    return bounds


def _configs(node: YamlNode, known_keys: Collection[str] | None) -> dict[str, ConfigRule]:
    return {key: _config_rule(each) for key, each in node.mapping(known_keys).items()}


def _config_rule(node: YamlNode) -> ConfigRule:
    found = node.mapping(_CONFIG_KEYS)
    numbers: dict[str, float] = {key: found[key].number() for key in ("min", "max") if key in found}
    rule = ConfigRule(
        required="required" in found and found["required"].boolean(),
        forbidden="forbidden" in found and found["forbidden"].boolean(),
        bounds=_bounds(node, numbers) if numbers else None,
        values=tuple(each.text() for each in found["values"].items()) if "values" in found else (),
    )
    if rule.forbidden and len(found) > 1:
        node.fail("what is forbidden can have no other rule")
    if "values" in found and not rule.values:
        found["values"].fail("must hold a value")
    return rule


def _protected(node: YamlNode, is_topic: bool) -> frozenset[ProtectedAction]:
    possible = tuple(ProtectedAction) if is_topic else (ProtectedAction.ALTER_CONFIGS,)
    if node.node.tag.endswith(":seq"):
        return frozenset(ProtectedAction(item.word(possible)) for item in node.items())
    if not node.node.tag.endswith(":bool"):
        node.fail(f"must be true, false or a list of {', '.join(possible)}")
    return frozenset(possible) if node.boolean() else frozenset()


def _acl_rule(node: YamlNode, enforced: bool) -> AclRule:
    found = node.mapping(("forbid", "mode", "because"))
    if "forbid" not in found:
        node.fail("must have forbid: what must not be created")
    forbidden = read_acl(found["forbid"])
    if not forbidden:
        found["forbid"].fail("must say something, or every ACL would be forbidden")
    return AclRule(
        forbidden=forbidden,
        enforced=_is_enforced(found["mode"]) if "mode" in found else enforced,
        because=found["because"].text() if "because" in found else "",
    )


def read_acl(node: YamlNode) -> dict[str, object]:
    """An ACL's attributes; types, operations and permissions in any case."""
    values: dict[str, object] = {}
    for name, each in node.mapping((*_ACL_WORDS, *_ACL_TEXTS)).items():
        if name in _ACL_TEXTS:
            values[name] = each.text()
            continue
        kind = _ACL_WORDS[name]
        valid = [word for word in kind.__members__ if word not in _NOT_OF_AN_ACL]
        if each.text().upper() not in valid:
            each.fail(f"must be {', '.join(valid).lower()}")
        values[name] = kind[each.text().upper()]
    return values
