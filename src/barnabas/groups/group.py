"""What every group is, whatever protocol its members speak."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from barnabas.coordinator.result import CoordinatorResult

#: Refuses the commit to one partition, a topic id and an index, with STALE_MEMBER_EPOCH or ILLEGAL_GENERATION.
CommitCheck: TypeAlias = Callable[[bytes, int], None]


class Group(Protocol):
    """One group: members that share the partitions of topics."""

    group_id: str

    @property
    def group_type(self) -> str:
        """`classic` or `consumer` (KIP-848), as ListGroups names it."""

    @property
    def state_name(self) -> str:
        """Its state as Kafka writes it: Stable, Empty, PreparingRebalance ..."""

    @property
    def protocol_type(self) -> str:
        """What its members are to each other: `consumer`, `connect`; empty when that is not known."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitCheck | None:
        """Refuse a commit that no current member sends.

        A member that is about to learn of a newer epoch may still commit what it has been given: what comes back is
        to be asked for each partition (KIP-1251). A refusal is one of the whole request.

        :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH,
            REBALANCE_IN_PROGRESS.
        """

    def committed_by(self, step: CoordinatorResult, member_id: str) -> None:
        """A member has committed: in the classic protocol that shows that it is alive."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse a fetch that names a member which is none.

        :raises KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
        """

    def check_offset_deletion(self) -> None:
        """Refuse that offsets are deleted of topics to which nobody is subscribed.

        :raises KafkaError: NON_EMPTY_GROUP when it has members that do not say what they are subscribed to.
        """

    def check_deletion(self) -> None:
        """Refuse to be deleted.

        :raises KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member may read a topic: its offsets are then kept."""

    @property
    def offsets_may_expire(self) -> bool:
        """Whether offsets of topics to which nobody is subscribed may expire (KIP-211, KIP-496).

        Not while a classic group is rebalancing, or has members that do not say what they are subscribed to.
        """

    def offsets_unused_since_ms(self) -> int | None:
        """Since when nobody has used its offsets; None: count from each commit."""

    def append_tombstones(self, step: CoordinatorResult) -> None:
        """Take back every record of the group itself, not those of its offsets."""

    def validate(self) -> None:
        """What must hold between any two events; fails by an assertion."""
