"""Configuration of consumer groups: group configs override those of the broker (KIP-848)."""

from dataclasses import dataclass
from enum import StrEnum

from barnabas.config.class_names import resolve_class
from barnabas.config.groups import group_value
from barnabas.groups.consumer.assignors.builtin import ASSIGNORS
from barnabas.groups.consumer.assignors.group_spec import Assignor
from barnabas.groups.context import GroupCoordinatorContext


class MigrationPolicy(StrEnum):
    """Which conversions between classic and consumer groups are allowed."""

    DISABLED = "disabled"
    DOWNGRADE = "downgrade"
    UPGRADE = "upgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group is upgraded when a member of the consumer protocol joins."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group is downgraded when its last member of the consumer protocol leaves."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True)
class Settings:
    """Reads the present configuration."""

    context: GroupCoordinatorContext

    def session_timeout_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "consumer.session.timeout.ms")

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self._of_group(group_id, "consumer.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        """Return the minimum time between two targets (4.3)."""
        return self._of_group(group_id, "consumer.assignment.interval.ms")

    def regex_refresh_interval_ms(self) -> int:
        """Return the interval at which expressions are matched again without new topics."""
        return self.context.config().integer("group.consumer.regex.refresh.interval.ms")

    def size_max(self) -> int:
        """Return the maximum number of members of a group."""
        return self.context.config().integer("group.consumer.max.size")

    def migration_policy(self) -> MigrationPolicy:
        return MigrationPolicy(self.context.config().text("group.consumer.migration.policy").lower())

    def assignors(self) -> dict[str, Assignor]:
        """Return the configured assignors by name; the first one is the default."""
        names = self.context.config().items("group.consumer.assignors")
        resolved = (resolve_class("group.consumer.assignors", name) for name in names)
        return {name: ASSIGNORS[name] for name in resolved}

    def _of_group(self, group_id: str, key: str) -> int:
        overrides = self.context.image().group_configs.get(group_id, {})
        value = group_value(self.context.config(), overrides, key)
        assert isinstance(value, int), (key, value)
        return value
