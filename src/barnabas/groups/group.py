"""The interface of all groups, independent of their protocol."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from barnabas.coordinator.result import CoordinatorResult

#: Checks the commit to one partition, by topic id and index; raises STALE_MEMBER_EPOCH or ILLEGAL_GENERATION.
CommitCheck: TypeAlias = Callable[[bytes, int], None]


class Group(Protocol):
    """A group: members that share the partitions of topics."""

    group_id: str

    @property
    def group_type(self) -> str:
        """`classic` or `consumer` (KIP-848), as in ListGroups."""

    @property
    def state_name(self) -> str:
        """The state as Kafka writes it: Stable, Empty, PreparingRebalance ..."""

    @property
    def protocol_type(self) -> str:
        """`consumer`, `connect` ...; empty if unknown."""

    @property
    def is_empty(self) -> bool:
        pass

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitCheck | None:
        """Check the member of an offset commit.

        A member that will get a newer epoch may still commit partitions that it owns: the result is a check for each
        partition (KIP-1251). An error is raised for the whole request.

        :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH,
            REBALANCE_IN_PROGRESS.
        """

    def on_commit(self, result: CoordinatorResult, member_id: str) -> None:
        """Handle a commit of a member; in the classic protocol it counts as a heartbeat."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check the member of an offset fetch.

        :raises KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
        """

    def check_offset_deletion(self) -> None:
        """Check that offsets of topics without subscribers may be deleted.

        :raises KafkaError: NON_EMPTY_GROUP if members do not publish their subscriptions.
        """

    def check_deletion(self) -> None:
        """Check that the group may be deleted.

        :raises KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member may read a topic, so that its offsets are kept."""

    @property
    def offsets_may_expire(self) -> bool:
        """Whether offsets of topics without subscribers may expire (KIP-211, KIP-496).

        Not while a classic group is rebalancing, or if members do not publish their subscriptions.
        """

    def offsets_unused_since_ms(self) -> int | None:
        """Time since which offsets are unused; None: count from each commit."""

    def append_tombstones(self, result: CoordinatorResult) -> None:
        """Append the tombstones of the group's records, not those of its offsets."""

    def validate(self) -> None:
        """Assert the invariants between events."""
