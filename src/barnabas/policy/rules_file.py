"""Reads the file of `barnabas.policy.file` into rules."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from barnabas.base.yaml_nodes import YamlError, YamlNode, read_yaml
from barnabas.base.yaml_schema import (
    TEXT,
    Boolean,
    ByKind,
    EnumT,
    Key,
    Keyed,
    MappingOf,
    Numeric,
    RegularExpression,
    Schema,
    SequenceOf,
    Whole,
    Word,
    by_name,
    word_for,
)
from barnabas.policy.interfaces import ConfigResourceType
from barnabas.policy.loading import PolicyLoadError
from barnabas.policy.policies import FILE_KEY
from barnabas.policy.rules import AclRule, Bounds, ConfigRule, ProtectedAction, Rule, Rules
from barnabas.wire.acls import AclOperation, AclPermission, PatternType, ResourceType

#: The known keys by resource type; any key for a type without an entry.
KnownKeys = Mapping[ConfigResourceType, Collection[str]]


def read_rules(path: Path, known_keys: KnownKeys) -> Rules:
    """The rules in a file.

    :raises PolicyLoadError: With line, key, value and what would be right.
    """
    try:
        return read_yaml(path, lambda node: _rules(node, known_keys))
    except YamlError as error:
        raise PolicyLoadError(FILE_KEY, str(path), str(error)) from None


def _rules(node: YamlNode, known_keys: KnownKeys) -> Rules:
    mode = node.mapping().get("mode")
    return _file(mode is None or MODE.read(mode), known_keys).read(node)


def _in_order(bounds: Bounds, node: YamlNode) -> Bounds:
    if bounds.min is not None and bounds.max is not None and bounds.min > bounds.max:
        node.fail(f"min must be at most max, but {bounds.min} is more than {bounds.max}")
    return bounds


def _config_rule(
    required: bool = False,
    forbidden: bool = False,
    values: tuple[str, ...] = (),
    **bounds: float,
) -> ConfigRule:
    return ConfigRule(required, forbidden, Bounds(**bounds) if bounds else None, values)


def _consistent(rule: ConfigRule, node: YamlNode) -> ConfigRule:
    _in_order(rule.bounds or Bounds(), node)
    if rule.forbidden and len(node.mapping()) > 1:
        node.fail("must not have other rules beside forbidden: true")
    return rule


MODE = Word({"enforce": True, "warn": False})
COUNTS = Keyed(Bounds, {"min": Whole(1), "max": Whole(1)}).then(_in_order)
CONFIG_RULE = Keyed(
    _config_rule,
    {
        "required": Boolean(),
        "forbidden": Boolean(),
        "min": Numeric(),
        "max": Numeric(),
        "values": SequenceOf(TEXT, empty="must have at least one value").to(tuple),
    },
).then(_consistent)


def _protected(*possible: ProtectedAction) -> Schema[frozenset[ProtectedAction]]:
    either = Boolean(f"must be true, false or a list of {', '.join(possible)}")
    return ByKind(
        either.to(lambda protected: frozenset(possible if protected else ())),
        sequence=SequenceOf(word_for(possible)).to(frozenset),
    )


def _words(kind: type[EnumT]) -> Word[EnumT]:
    """Words in any case, without those that occur only in filters, or for unknown values."""
    members = (each for each in kind if each.name not in ("UNKNOWN", "ANY", "MATCH"))
    return Word(by_name(members), any_case=True)


#: Attributes of an ACL.
ACL_KEYS: Mapping[str, Schema[object]] = {
    "resource_type": _words(ResourceType),
    "resource_name": TEXT,
    "pattern_type": _words(PatternType),
    "principal": TEXT,
    "host": TEXT,
    "operation": _words(AclOperation),
    "permission": _words(AclPermission),
}
FORBIDDEN_ACL = Keyed[Mapping[str, object]](
    dict, ACL_KEYS, empty="must have at least one key, because otherwise every ACL would be forbidden"
)

OF_EVERY_RULE = {"mode": Key(MODE, into="enforced"), "because": Key(TEXT)}
OF_TOPICS = {
    "name": Key(RegularExpression(), into="pattern"),
    "partitions": Key(COUNTS),
    "replication_factor": Key(COUNTS),
    "protected": Key(_protected(*ProtectedAction)),
}
OF_OTHERS = {"protected": Key(_protected(ProtectedAction.ALTER_CONFIGS))}
SECTIONS = {
    "topics": (ConfigResourceType.TOPIC, OF_TOPICS),
    "brokers": (ConfigResourceType.BROKER, OF_OTHERS),
    "groups": (ConfigResourceType.GROUP, OF_OTHERS),
    "client_metrics": (ConfigResourceType.CLIENT_METRICS, OF_OTHERS),
}


def _file(enforced: bool, known_keys: KnownKeys) -> Schema[Rules]:
    """The whole file; rules without a mode have `enforced`."""

    def section(kind: ConfigResourceType, more: Mapping[str, Key]) -> Key:
        configs = MappingOf(CONFIG_RULE, known=known_keys.get(kind))
        keys = {"prefix": Key(TEXT), "configs": Key(configs), **OF_EVERY_RULE, **more}
        return Key(SequenceOf(Keyed(partial(Rule, enforced=enforced), keys), distinct="prefix"))

    forbid = Key(FORBIDDEN_ACL, required="what must not be created", into="forbidden")
    acl_rule = Keyed(partial(AclRule, enforced=enforced), {"forbid": forbid, **OF_EVERY_RULE})
    sections = {name: section(*of_section) for name, of_section in SECTIONS.items()}
    return Keyed(_by_type, {"mode": MODE, "acls": SequenceOf(acl_rule), **sections})


def _by_type(mode: bool = True, acls: Sequence[AclRule] = (), **sections: list[Rule]) -> Rules:
    return Rules({SECTIONS[name][0]: rules for name, rules in sections.items()}, acls)
