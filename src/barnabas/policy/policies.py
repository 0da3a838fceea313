"""All policies of one broker: loaded together, asked by the handlers, replaced together."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.policy.guarded import GuardedPolicy
from barnabas.policy.interfaces import (
    AlterConfigPolicy,
    ConfigResource,
    ConfigResourceType,
    CreateTopicPolicy,
)
from barnabas.policy.loading import PolicyLoadError, fresh_modules

CREATE_TOPIC_KEY = "create.topic.policy.class.name"
ALTER_CONFIG_KEY = "alter.config.policy.class.name"

_log = logging.getLogger("barnabas.policy")


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Which policies a broker has; an empty name stands for none."""

    create_topic_class: str = ""
    alter_config_class: str = ""
    time_limit_ms: int = 1000
    #: what `configure` gets: the broker's settings
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Loaded:
    create_topic: GuardedPolicy | None = None
    alter_config: GuardedPolicy | None = None

    async def close(self) -> None:
        for policy in (self.create_topic, self.alter_config):
            if policy is not None:
                await policy.close()


class Policies:
    """What the handlers ask before they change anything. Without settings everything may be done."""

    def __init__(self, settings: PolicySettings | None = None) -> None:
        self._settings = settings or PolicySettings()
        self._loaded = _Loaded()
        self._counts = {"reloads_count": 0, "failed_reloads_count": 0}

    async def load(self) -> None:
        """Load what the settings name.

        :raises PolicyLoadError: When one of them cannot be had.
        """
        self._loaded = await self._load()

    async def reload(self) -> None:
        """Load everything again, code and files as they are now, and put it in the place of what there was.

        :raises PolicyLoadError: When one of them cannot be had: all policies stay as they were.
        """
        settings = self._settings
        try:
            with fresh_modules(settings.create_topic_class, settings.alter_config_class):
                loaded = await self._load()
        except PolicyLoadError as error:
            self._counts["failed_reloads_count"] += 1
            _log.error("policies could not be reloaded, those from before stay in force: %s", error)
            raise
        before, self._loaded = self._loaded, loaded
        self._counts["reloads_count"] += 1
        await before.close()

    async def _load(self) -> _Loaded:
        settings = self._settings
        create_topic = await self._guarded(CREATE_TOPIC_KEY, settings.create_topic_class)
        try:
            alter_config = await self._guarded(ALTER_CONFIG_KEY, settings.alter_config_class)
        except PolicyLoadError:
            await _Loaded(create_topic).close()
            raise
        return _Loaded(create_topic, alter_config)

    async def _guarded(self, key: str, class_name: str) -> GuardedPolicy | None:
        if not class_name:
            return None
        policy = GuardedPolicy(key, class_name, self._settings.time_limit_ms)
        await policy.load(self._settings.configs)
        return policy

    async def close(self) -> None:
        """Close every policy."""
        loaded, self._loaded = self._loaded, _Loaded()
        await loaded.close()

    @property
    def guards_creation(self) -> bool:
        """Whether anybody wants to be asked by `check_create_topic`."""
        return self._loaded != _Loaded()

    async def check_create_topic(self, new: CreateTopicPolicy.RequestMetadata) -> None:
        """Let a topic be created that nothing else stands against.

        As in Kafka, configs that it brings pass the policy on altering configs first.

        :raises KafkaError: POLICY_VIOLATION; UNKNOWN_SERVER_ERROR when a policy failed or was too slow.
        """
        if new.configs:
            resource = ConfigResource(ConfigResourceType.TOPIC, new.topic)
            await self.check_alter_config(AlterConfigPolicy.RequestMetadata(resource, new.configs))
        if self._loaded.create_topic is not None:
            await self._loaded.create_topic.validate(new, f"topic '{new.topic}'")

    async def check_alter_config(self, altered: AlterConfigPolicy.RequestMetadata) -> None:
        """Let configs be altered that are valid otherwise.

        :raises KafkaError: As `check_create_topic`.
        """
        if self._loaded.alter_config is not None:
            kind, name = altered.resource
            await self._loaded.alter_config.validate(altered, f"{kind.name} '{name}'")

    def statistics(self) -> dict[str, int]:
        """What the policies were asked, and what came of it."""
        totals = dict(self._counts)
        for policy in (self._loaded.create_topic, self._loaded.alter_config):
            for name, count in policy.statistics().items() if policy else ():
                totals[name] = totals.get(name, 0) + count
        return totals
