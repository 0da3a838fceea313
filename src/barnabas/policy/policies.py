"""All user classes and rules of one broker, loaded, called and replaced together."""

import asyncio
import copy
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from barnabas.base.resource_names import resource_name
from barnabas.policy.guarded import GuardedPolicy, UserObject
from barnabas.policy.interfaces import (
    AlterConfigPolicy,
    ConfigResource,
    ConfigResourceType,
    CreateTopicPolicy,
)
from barnabas.policy.loading import PolicyLoadError, fresh_modules
from barnabas.policy.rules import AclAction, Rules, Violation
from barnabas.policy.security_calls import GuardedAuthorizer, GuardedPrincipalBuilder
from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry, Values
from barnabas.wire.acls import AclBinding, PatternType
from barnabas.wire.errors import ErrorCode, KafkaError

CREATE_TOPIC_KEY = "create.topic.policy.class.name"
ALTER_CONFIG_KEY = "alter.config.policy.class.name"
AUTHORIZER_KEY = "authorizer.class.name"
PRINCIPAL_BUILDER_KEY = "principal.builder.class"
FILE_KEY = "barnabas.policy.file"

_log = logging.getLogger("barnabas.policy")


class PolicySettings(NamedTuple):
    """The user classes and rules of a broker; an empty name means no class."""

    create_topic_class: str = ""
    alter_config_class: str = ""
    authorizer_class: str = ""
    principal_builder_class: str = ""
    #: listener -> its own class instead, empty for none
    listener_principal_builders: Mapping[str, str] = MappingProxyType({})
    time_limit_ms: int = 1000
    file: Path | None = None  #: the rules file of the ready-made policies
    #: the keys that rules may name, by resource type; any key for a type without an entry
    known_keys: Mapping[ConfigResourceType, Iterable[str]] = MappingProxyType({})
    #: the broker's settings, passed to `configure`
    configs: Mapping[str, str] = MappingProxyType({})

    @property
    def class_names(self) -> tuple[str, ...]:
        return (
            self.create_topic_class,
            self.alter_config_class,
            self.authorizer_class,
            self.principal_builder_class,
            *self.listener_principal_builders.values(),
        )


@dataclass(slots=True)
class _Loaded:
    create_topic: GuardedPolicy | None = None
    alter_config: GuardedPolicy | None = None
    authorizer: GuardedAuthorizer | None = None
    principal_builder: GuardedPrincipalBuilder | None = None
    listener_principal_builders: dict[str, GuardedPrincipalBuilder | None] = field(default_factory=dict)
    rules: Rules | None = None

    @property
    def guards_changes(self) -> bool:
        return self.create_topic is not None or self.alter_config is not None or self.rules is not None

    @property
    def principal_builders(self) -> list[GuardedPrincipalBuilder]:
        every = (self.principal_builder, *self.listener_principal_builders.values())
        return [each for each in every if each is not None]

    def _objects(self) -> list[UserObject]:
        every = (self.create_topic, self.alter_config, self.authorizer, *self.principal_builders)
        return [each for each in every if each is not None]

    async def load(self, configs: Mapping[str, str]) -> None:
        """Load all classes.

        :raises PolicyLoadError: When one of them cannot be loaded; the others are closed.
        """
        loaded: list[UserObject] = []
        try:
            for each in self._objects():
                await each.load(configs)
                loaded.append(each)
        except PolicyLoadError:
            for each in loaded:
                await each.close()
            raise

    async def close(self) -> None:
        for each in self._objects():
            await each.close()

    def statistics(self) -> Counter[str]:
        totals: Counter[str] = Counter()
        for each in self._objects():
            totals.update(each.statistics())
        return totals


class Policies:
    """Policies that handlers call before a change. Without settings everything is allowed."""

    def __init__(
        self, settings: PolicySettings | None = None, on_warning: Callable[[str], None] | None = None
    ) -> None:
        """:param on_warning: Called with refusals of rules in mode `warn`; logs them by default."""
        self._settings = settings or PolicySettings()
        self._on_warning = on_warning or _log_warning
        self.observe: Callable[[str, str | None], None] | None = None
        self._loaded = _Loaded()
        self._reloading = asyncio.Lock()
        self._counts = dict.fromkeys(
            (
                "checks_count",
                "refusals_count",
                "warnings_count",
                "failures_count",
                "reloads_count",
                "failed_reloads_count",
            ),
            0,
        )

    async def load(self) -> None:
        """Load the policies of the settings.

        :raises PolicyLoadError: When one of them cannot be loaded.
        """
        self._loaded = await self._load()

    async def reload(self) -> None:
        """Load everything again with current code and files, and replace the policies.

        :raises PolicyLoadError: When one of them cannot be loaded: all policies stay as they were.
        """
        async with self._reloading:
            try:
                with fresh_modules(*self._settings.class_names):
                    loaded = await self._load()
            except PolicyLoadError as error:
                self._counts["failed_reloads_count"] += 1
                _log.error("cannot reload policies; the previous ones stay in force: %s", error)
                raise
            before, self._loaded = self._loaded, loaded
            self._counts["reloads_count"] += 1
            self._count_classes(before)
            await before.close()

    async def _load(self) -> _Loaded:
        settings = self._settings
        limit_ms = settings.time_limit_ms
        loaded = _Loaded(rules=await asyncio.to_thread(_read_rules, settings) if settings.file else None)
        if settings.create_topic_class:
            loaded.create_topic = GuardedPolicy(CREATE_TOPIC_KEY, settings.create_topic_class, limit_ms)
        if settings.alter_config_class:
            loaded.alter_config = GuardedPolicy(ALTER_CONFIG_KEY, settings.alter_config_class, limit_ms)
        if settings.authorizer_class:
            loaded.authorizer = GuardedAuthorizer(AUTHORIZER_KEY, settings.authorizer_class, limit_ms)
        loaded.principal_builder = _principal_builder(settings.principal_builder_class, limit_ms)
        loaded.listener_principal_builders = {
            listener: _principal_builder(name, limit_ms, listener)
            for listener, name in settings.listener_principal_builders.items()
        }
        await loaded.load(settings.configs)
        return loaded

    async def close(self) -> None:
        loaded, self._loaded = self._loaded, _Loaded()
        await loaded.close()

    def with_observer(self, observe: Callable[[str, str | None], None]) -> "Policies":
        """Return the same policies for one request: `observe` is called for each checked resource, with None for a
        message, and with the message of rules in mode `warn`.
        """
        observed = copy.copy(self)
        observed.observe = observe
        return observed

    @property
    def guards_creation(self) -> bool:
        """Whether `check_create_topic` has anything to call."""
        return self._loaded.guards_changes

    @property
    def guards_alteration(self) -> bool:
        """Whether `check_alter_config` has anything to call."""
        return self._loaded.alter_config is not None or self._loaded.rules is not None

    @property
    def authorizer(self) -> GuardedAuthorizer | None:
        """The present instance of the user's authorizer. Do not keep it: a reload replaces it."""
        return self._loaded.authorizer

    def principal_builder(self, listener: str) -> GuardedPrincipalBuilder | None:
        """Return the present principal builder of a listener. Do not keep it: a reload replaces it."""
        loaded = self._loaded
        return loaded.listener_principal_builders.get(listener, loaded.principal_builder)

    async def check_create_topic(self, new: CreateTopicPolicy.RequestMetadata) -> None:
        """Check a topic that is valid otherwise.

        As in Kafka, its configs pass the AlterConfigPolicy first.

        :raises KafkaError: POLICY_VIOLATION; UNKNOWN_SERVER_ERROR when a policy failed or timed out.
        """
        if self.guards_creation:
            self._report(f"topic/{new.topic}", None)
        if self._loaded.rules is not None:
            self._act_on(f"topic/{new.topic}", self._loaded.rules.violations_of_creation(new))
        if new.configs and self._loaded.alter_config is not None:
            resource = ConfigResource(ConfigResourceType.TOPIC, new.topic)
            await self._ask_alter_config(AlterConfigPolicy.RequestMetadata(resource, new.configs))
        if self._loaded.create_topic is not None:
            await self._loaded.create_topic.validate(new, f"topic '{new.topic}'")

    async def check_alter_config(
        self, altered: AlterConfigPolicy.RequestMetadata, removed: Iterable[str] = ()
    ) -> None:
        """Check altered configs that are valid otherwise.

        :param removed: Keys that AlterConfigs removes by omission; rules see them, classes do not.
        :raises KafkaError: As `check_create_topic`.
        """
        kind, name = altered.resource
        resource = resource_name(kind.name, name)
        if self.guards_alteration:
            self._report(resource, None)
        if self._loaded.rules is not None:
            self._act_on(resource, self._loaded.rules.violations_of_alteration(altered, removed))
        await self._ask_alter_config(altered)

    async def _ask_alter_config(self, altered: AlterConfigPolicy.RequestMetadata) -> None:
        if self._loaded.alter_config is not None:
            kind, name = altered.resource
            await self._loaded.alter_config.validate(altered, f"{kind.name} '{name}'")

    def check_delete_topic(self, topic: str) -> None:
        """Check the deletion of a topic.

        :raises KafkaError: POLICY_VIOLATION.
        """
        if self._loaded.rules is not None:
            self._act_on(f"topic/{topic}", self._loaded.rules.violations_of_deletion(topic))

    def check_create_partitions(self, topic: str, count: int) -> None:
        """Check a topic's growth to `count` partitions.

        :raises KafkaError: POLICY_VIOLATION.
        """
        if self._loaded.rules is not None:
            self._act_on(f"topic/{topic}", self._loaded.rules.violations_of_more_partitions(topic, count))

    def check_acl(self, action: AclAction, acl: AclBinding) -> None:
        """Check the creation or deletion of an ACL.

        :raises KafkaError: POLICY_VIOLATION.
        """
        if self._loaded.rules is not None:
            prefixed = acl.pattern_type is PatternType.PREFIXED
            resource = resource_name(acl.resource_type.name, acl.resource_name, prefixed=prefixed)
            self._act_on(resource, self._loaded.rules.violations_of_acl(action, acl))

    def _act_on(self, resource: str, violations: Sequence[Violation]) -> None:
        self._counts["checks_count"] += 1
        self._report(resource, None)
        refused = "; ".join(violation.message for violation in violations if violation.enforced)
        for violation in violations:
            if not violation.enforced:
                self._counts["warnings_count"] += 1
                self._on_warning(violation.message)
                self._report(resource, violation.message)
        if refused:
            self._counts["refusals_count"] += 1
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{refused}.")

    def _report(self, resource: str, message: str | None) -> None:
        if self.observe is not None:
            self.observe(resource, message)

    def register_metrics(self, registry: MetricsRegistry) -> None:
        def collect(outcomes: dict[str, str]) -> Values:
            counts = self.statistics()
            return [({"outcome": outcome}, counts[name]) for outcome, name in outcomes.items()]

        checks = {
            "checked": "checks_count",
            "refused": "refusals_count",
            "failed": "failures_count",
            "warned": "warnings_count",
        }
        reloads = {"done": "reloads_count", "failed": "failed_reloads_count"}
        registry.add_metric(names.POLICY_CHECKS, lambda: collect(checks))
        registry.add_metric(names.POLICY_RELOADS, lambda: collect(reloads))
        registry.add_metric(names.SECURITY_CALLS, self._security_calls)

    def _security_calls(self) -> Values:
        authorizer = self._loaded.authorizer
        objects: dict[str, Sequence[GuardedAuthorizer | GuardedPrincipalBuilder]] = {
            "authorizer": [authorizer] if authorizer is not None else [],
            "principal builder": self._loaded.principal_builders,
        }
        return [
            ({"class": name, "outcome": outcome}, count)
            for name, each in objects.items()
            if each
            for outcome, count in (
                ("called", sum(one.calls_count for one in each)),
                ("failed", sum(one.failures_count for one in each)),
            )
        ]

    def statistics(self) -> dict[str, int]:
        totals = dict(self._counts)
        for name, count in self._loaded.statistics().items():
            totals[name] = totals.get(name, 0) + count
        return totals

    def _count_classes(self, before: _Loaded) -> None:
        """Keep the counts of replaced classes."""
        for name, count in before.statistics().items():
            if name in self._counts:
                self._counts[name] += count


def _principal_builder(
    class_name: str, time_limit_ms: int, listener: str = ""
) -> GuardedPrincipalBuilder | None:
    """Return the object that calls the user's class, not loaded yet; None without a class."""
    if not class_name:
        return None
    prefix = f"listener.name.{listener.lower()}." if listener else ""
    return GuardedPrincipalBuilder(prefix + PRINCIPAL_BUILDER_KEY, class_name, time_limit_ms)


def _read_rules(settings: PolicySettings) -> Rules:
    from barnabas.policy.rules_file import read_rules  # imports YAML, which takes 20 ms

    assert settings.file is not None
    return read_rules(settings.file, {kind: set(keys) for kind, keys in settings.known_keys.items()})


def _log_warning(message: str) -> None:
    _log.warning("allowed despite a policy violation (mode warn): %s", message)
