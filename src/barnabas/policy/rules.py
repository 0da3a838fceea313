"""The ready-made policies: rules by prefix on topics, configs and ACLs. Pure: no file, no log.

For each setting, the rule with the longest prefix that has it applies.
"""

import enum
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from barnabas.base.resource_names import HIDDEN
from barnabas.config.describe import is_sensitive
from barnabas.policy.interfaces import AlterConfigPolicy, ConfigResourceType, CreateTopicPolicy
from barnabas.wire.acls import (
    FORBIDDING,
    GRANTING,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

ValueT = TypeVar("ValueT")

#: Keys for which a negative number means no limit, which exceeds any bound.
UNLIMITED_KEYS = frozenset(
    {
        "barnabas.audit.retention.ms",
        "barnabas.security.log.retention.ms",
        "barnabas.table.retention.ms",
        "barnabas.trash.retention.bytes",
        "connections.max.idle.ms",
        "local.retention.bytes",
        "local.retention.ms",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.retention.bytes",
        "log.retention.hours",
        "log.retention.minutes",
        "log.retention.ms",
        "queued.max.request.bytes",
        "remote.log.index.file.cache.ttl.ms",
        "retention.bytes",
        "retention.ms",
    }
)

#: The value of the `local.` keys for the value of the key without `local.`.
_INHERITED = -2


class Violation(NamedTuple):
    """A violation of a rule by a change; one that is not enforced is only logged."""

    message: str
    enforced: bool = True


class ProtectedAction(enum.StrEnum):
    """Actions from which a topic or another resource can be protected."""

    DELETE = "delete"
    ADD_PARTITIONS = "add_partitions"
    ALTER_CONFIGS = "alter_configs"
    ALTER_ACLS = "alter_acls"


class Bounds(NamedTuple):
    """The smallest and largest allowed number; None for no bound."""

    min: float | None = None
    max: float | None = None

    def violation_reason(self, number: float) -> str:
        """Return the reason why the number is not allowed; empty if it is."""
        if self.min is not None and number < self.min:
            return f"must be at least {self.min}"
        if self.max is not None and number > self.max:
            return f"must be at most {self.max}"
        return ""


def _is_unlimited(key: str, number: float) -> bool:
    """Whether the value of a config means no limit."""
    is_inherited = number == _INHERITED and "local." in key
    return number < 0 and key in UNLIMITED_KEYS and not is_inherited


class ConfigRule(NamedTuple):
    """The allowed values of a config."""

    required: bool = False
    forbidden: bool = False
    bounds: Bounds | None = None
    values: tuple[str, ...] = ()  #: allowed values, of a list the allowed items; empty for any

    def violation_reason(self, key: str, text: str, *, hides_values: bool = False) -> str:
        """Return the reason why the value is not allowed; empty if it is.

        :param hides_values: Leave out the allowed values: those of a secret are secrets.
        """
        if self.forbidden:
            return "must not be set"
        items = [item.strip() for item in text.split(",")]
        if self.values and not set(items) <= set(self.values):
            return "must be an allowed value" if hides_values else f"must be {' or '.join(self.values)}"
        if self.bounds is None:
            return ""
        try:
            number = float(text)
        except ValueError:
            return "must be a number"
        return self.bounds.violation_reason(math.inf if _is_unlimited(key, number) else number)


class Rule(NamedTuple):
    """Settings for resources whose name begins with `prefix`. None leaves a setting open."""

    prefix: str = ""
    enforced: bool = True
    because: str = ""  #: added to every refusal
    pattern: re.Pattern[str] | None = None  #: must match the whole name
    partitions: Bounds | None = None
    replication_factor: Bounds | None = None
    configs: Mapping[str, ConfigRule] = MappingProxyType({})
    protected: frozenset[ProtectedAction] | None = None

    def violation(self, message: str) -> Violation:
        """Return the message as a violation of this rule."""
        return Violation(f"{message}{f' ({self.because})' if self.because else ''}", self.enforced)


class AclRule(NamedTuple):
    """A forbidden ACL: one that has the attributes in `forbidden`, where an operation is also part of others."""

    forbidden: Mapping[str, object]
    enforced: bool = True
    because: str = ""

    def matches(self, acl: AclBinding) -> bool:
        return all(
            acl.operation in _containing(acl.permission)[value]
            if isinstance(value, AclOperation)
            else getattr(acl, name) == value
            for name, value in self.forbidden.items()
        )


def _containing(permission: AclPermission) -> Mapping[AclOperation, frozenset[AclOperation]]:
    """Return the operations of ACLs with this permission that apply to an operation."""
    return FORBIDDING if permission is AclPermission.DENY else GRANTING


class AclAction(enum.StrEnum):
    """The change of an ACL."""

    CREATE = "create"
    DELETE = "delete"


class Rules:
    """All rules of one file."""

    def __init__(
        self, by_type: Mapping[ConfigResourceType, Sequence[Rule]], acls: Sequence[AclRule] = ()
    ) -> None:
        self._by_type = {
            kind: sorted(rules, key=lambda rule: -len(rule.prefix)) for kind, rules in by_type.items()
        }
        self._acls = acls

    def _first(
        self, kind: ConfigResourceType, name: str, pick: Callable[[Rule], ValueT | None]
    ) -> tuple[Rule, ValueT] | None:
        """Return the rule with the longest prefix that has a setting, and its value."""
        for rule in self._by_type.get(kind, ()):
            if name.startswith(rule.prefix) and (value := pick(rule)) is not None:
                return rule, value
        return None

    def violations_of_creation(self, new: CreateTopicPolicy.RequestMetadata) -> list[Violation]:
        """Return the violations of a new topic."""
        placed = new.replicas_assignments
        partitions = new.num_partitions if placed is None else len(placed)
        factor = new.replication_factor if placed is None else max(map(len, placed.values()), default=0)
        return [
            *self._name(new.topic),
            *self._count(new.topic, "partitions", partitions, lambda rule: rule.partitions),
            *self._count(new.topic, "replicas", factor, lambda rule: rule.replication_factor),
            *self._configs(ConfigResourceType.TOPIC, new.topic, new.configs, missing_from=new.configs),
        ]

    def _name(self, topic: str) -> Iterator[Violation]:
        match = self._first(ConfigResourceType.TOPIC, topic, lambda rule: rule.pattern)
        if match and not match[1].fullmatch(topic):
            rule, pattern = match
            yield rule.violation(f"Topic name '{topic}' must match {pattern.pattern}")

    def _count(
        self, topic: str, what: str, count: int | None, pick: Callable[[Rule], Bounds | None]
    ) -> Iterator[Violation]:
        match = self._first(ConfigResourceType.TOPIC, topic, pick)
        if match and count is not None and (violation_reason := match[1].violation_reason(count)):
            yield match[0].violation(f"Topic '{topic}' has {count} {what}: it {violation_reason}")

    def _configs(
        self,
        kind: ConfigResourceType,
        name: str,
        configs: Mapping[str, str | None],
        *,
        missing_from: Mapping[str, str] | None = None,
        removed: Iterable[str] = (),
    ) -> Iterator[Violation]:
        """Yield the violations of configs: keys that are set, missing although required, or removed."""
        for key, (rule, config_rule) in self._config_rules(kind, name).items():
            text = configs.get(key)
            is_secret = kind is ConfigResourceType.BROKER and is_sensitive(key)
            if text is not None and (
                violation_reason := config_rule.violation_reason(key, text, hides_values=is_secret)
            ):
                value = HIDDEN if is_secret else f"'{text}'"
                yield rule.violation(f"{key} of {_named(kind, name)} is {value}: it {violation_reason}")
            is_removed = key in removed or (key in configs and text is None)
            if config_rule.required and (
                is_removed or (missing_from is not None and key not in missing_from)
            ):
                yield rule.violation(f"{key} of {_named(kind, name)} must be set")

    def _config_rules(self, kind: ConfigResourceType, name: str) -> dict[str, tuple[Rule, ConfigRule]]:
        rules: dict[str, tuple[Rule, ConfigRule]] = {}
        for rule in self._by_type.get(kind, ()):
            if name.startswith(rule.prefix):
                for key, config_rule in rule.configs.items():
                    rules.setdefault(key, (rule, config_rule))
        return rules

    def violations_of_alteration(
        self, altered: AlterConfigPolicy.RequestMetadata, removed: Iterable[str] = ()
    ) -> list[Violation]:
        """Return the violations of altered configs; `removed` are keys that are removed by omission."""
        kind, name = altered.resource
        protecting = self._protecting(kind, name, ProtectedAction.ALTER_CONFIGS)
        violations = self._configs(kind, name, altered.configs, removed=frozenset(removed))
        return [*protecting, *violations]

    def _protecting(
        self, kind: ConfigResourceType, name: str, action: ProtectedAction
    ) -> Iterator[Violation]:
        match = self._first(kind, name, lambda rule: rule.protected)
        if match and action in match[1]:
            named = _named(kind, name)
            yield match[0].violation(f"{named[0].upper()}{named[1:]} is protected: {_FORBIDDEN[action]}")

    def violations_of_deletion(self, topic: str) -> list[Violation]:
        """Return the violations of deleting a topic."""
        return list(self._protecting(ConfigResourceType.TOPIC, topic, ProtectedAction.DELETE))

    def violations_of_more_partitions(self, topic: str, count: int) -> list[Violation]:
        """Return the violations of a topic's growth to `count` partitions."""
        return [
            *self._protecting(ConfigResourceType.TOPIC, topic, ProtectedAction.ADD_PARTITIONS),
            *self._count(topic, "partitions", count, lambda rule: rule.partitions),
        ]

    def violations_of_acl(self, action: AclAction, acl: AclBinding) -> list[Violation]:
        """Return the violations of creating or deleting an ACL."""
        violations = list(self._protecting_acls(acl))
        if action is AclAction.CREATE:
            for rule in self._acls:
                if rule.matches(acl):
                    because = f" ({rule.because})" if rule.because else ""
                    violations.append(Violation(f"{_acl_text(acl)} is forbidden{because}", rule.enforced))
        return violations

    def _protecting_acls(self, acl: AclBinding) -> Iterator[Violation]:
        """Yield the rules that protect an ACL, which applies to a protected topic by name, prefix or wildcard."""
        if acl.resource_type is not ResourceType.TOPIC:
            return
        name = acl.resource_name
        everything = acl.pattern_type is PatternType.LITERAL and name == WILDCARD
        if not everything:
            yield from self._protecting(ConfigResourceType.TOPIC, name, ProtectedAction.ALTER_ACLS)
        if everything or acl.pattern_type is PatternType.PREFIXED:
            prefix = "" if everything else name
            for rule in self._by_type.get(ConfigResourceType.TOPIC, ()):
                within = rule.prefix.startswith(prefix) and (everything or rule.prefix != prefix)
                if within and ProtectedAction.ALTER_ACLS in (rule.protected or ()):
                    yield rule.violation(
                        f"{_acl_text(acl)} applies to the topics '{rule.prefix}*', which are protected: "
                        f"{_FORBIDDEN[ProtectedAction.ALTER_ACLS]}"
                    )


_FORBIDDEN = {
    ProtectedAction.DELETE: "it must not be deleted",
    ProtectedAction.ADD_PARTITIONS: "no partitions may be added",
    ProtectedAction.ALTER_CONFIGS: "its configs must not be altered",
    ProtectedAction.ALTER_ACLS: "ACLs on it must be neither created nor removed",
}


def _named(kind: ConfigResourceType, name: str) -> str:
    if kind is ConfigResourceType.BROKER and not name:
        return "the default of all brokers"
    return f"{kind.name.lower().replace('_', ' ')} '{name}'"


def _acl_text(acl: AclBinding) -> str:
    return (
        f"{acl.permission.name} {acl.operation.name} for {acl.principal} from {acl.host} on "
        f"{acl.pattern_type.name} {acl.resource_type.name} '{acl.resource_name}'"
    )
