"""The configuration of consumer groups: what a group sets goes before what the broker has (KIP-848)."""

from dataclasses import dataclass
from enum import StrEnum

from barnabas.config.class_names import resolve_class
from barnabas.config.groups import group_value
from barnabas.groups.consumer.assignors.builtin import ASSIGNORS
from barnabas.groups.consumer.assignors.group_spec import Assignor
from barnabas.groups.context import GroupCoordinatorContext


class MigrationPolicy(StrEnum):
    """Which conversions between classic and consumer groups happen while members change over."""

    DISABLED = "disabled"
    DOWNGRADE = "downgrade"
    UPGRADE = "upgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group becomes a consumer group when a member of the new protocol joins."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group becomes a classic group when the last member of the new protocol leaves."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True)
class Settings:
    """Reads what holds at the moment."""

    context: GroupCoordinatorContext

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may be silent."""
        return self._of_group(group_id, "consumer.session.timeout.ms")

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to be heard."""
        return self._of_group(group_id, "consumer.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        """Shortest time between two targets (4.3)."""
        return self._of_group(group_id, "consumer.assignment.interval.ms")

    def regex_refresh_interval_ms(self) -> int:
        """How often expressions are matched anew though no topic has come."""
        return self.context.config().integer("group.consumer.regex.refresh.interval.ms")

    def size_max(self) -> int:
        """Members of a group at most."""
        return self.context.config().integer("group.consumer.max.size")

    def migration_policy(self) -> MigrationPolicy:
        """Which conversions happen."""
        return MigrationPolicy(self.context.config().text("group.consumer.migration.policy").lower())

    def assignors(self) -> dict[str, Assignor]:
        """What groups may use, by name; the first is the default."""
        names = self.context.config().items("group.consumer.assignors")
        resolved = (resolve_class("group.consumer.assignors", name) for name in names)
        return {name: ASSIGNORS[name] for name in resolved}

    def _of_group(self, group_id: str, key: str) -> int:
        overrides = self.context.image().group_configs.get(group_id, {})
        value = group_value(self.context.config(), overrides, key)
        assert isinstance(value, int), (key, value)
        return value
