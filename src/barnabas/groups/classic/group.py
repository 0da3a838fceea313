"""A classic group: its state, generation, protocol and members."""

from collections.abc import Collection
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorResult
from barnabas.groups.classic.members import GroupMembers
from barnabas.groups.classic.states import TRANSITIONS, ClassicState
from barnabas.groups.classic.subscriptions import CONSUMER, subscribed_topics
from barnabas.groups.classic.timers import await_heartbeat
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey
from barnabas.wire.errors import ErrorCode, KafkaError

#: Transitions that a group keeps for statistics.
_STORY_LENGTH_MAX = 20

#: Generation of commits and fetches without a member; smaller ones have the same meaning.
NO_GENERATION = -1

_S = ClassicState


class StateTransition(NamedTuple):
    state: ClassicState
    generation: int
    why: str


class InitialWait(NamedTuple):
    """How an empty group waits for more members than the first one."""

    delay_ms: int  #: duration of this wait
    remaining_ms: int  #: by how much it may be extended
    is_extended: bool = False  #: a member has joined meanwhile


class ClassicGroup(GroupMembers):
    """Members join and leave immediately; assignments are applied with the record that stores them."""

    group_type = "classic"

    def __init__(self, group_id: str, now_ms: int | None) -> None:
        super().__init__()
        self.group_id = group_id
        self.state = _S.EMPTY
        self.state_since_ms = now_ms  #: None if an old record has no time
        self.story: list[StateTransition] = []
        self.generation = 0
        self.protocol: str | None = None  #: the protocol of this generation
        self.initial_wait: InitialWait | None = None  #: during the first rebalance
        self.subscribed_topics: frozenset[str] | None = None  #: of this generation; None if unknown

    # States

    def transition(self, target: ClassicState, why: str, now_ms: int) -> None:
        assert target in TRANSITIONS[self.state], (self.group_id, self.state, target, self.story)
        self.state, self.state_since_ms = target, now_ms
        self.story = [*self.story[1 - _STORY_LENGTH_MAX :], StateTransition(target, self.generation, why)]

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may start."""
        return _S.PREPARING_REBALANCE in TRANSITIONS[self.state]

    @property
    def state_name(self) -> str:
        """The state as Kafka writes it."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether the state is EMPTY, not just the list of members."""
        return self.state is _S.EMPTY

    def supports(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Return whether a member with these protocols could join."""
        if self.is_empty:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and self.all_know_one_of(protocols)

    def begin_generation(self, now_ms: int) -> None:
        """Start a generation after all members have joined: select a protocol, and wait for the leader if there are
        members.
        """
        self.generation += 1
        self.unsynced_members.clear()
        self.initial_wait = None
        self.protocol = self.selected_protocol() if self.members else None
        target = _S.COMPLETING_REBALANCE if self.members else _S.EMPTY
        self.transition(target, f"{len(self.members)} members have joined", now_ms)
        self.update_subscriptions()

    def update_subscriptions(self) -> None:
        """Determine the topics to which the members of this generation subscribe."""
        protocol = self.protocol or ""
        subscriptions = [member.protocols[protocol] for member in self.members.values()]
        self.subscribed_topics = subscribed_topics(subscriptions) if self.protocol_type == CONSUMER else None

    # The interface of all groups

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> None:
        """Check the member of an offset commit; without a generation it is a simple consumer's.

        :raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
        """
        if generation <= NO_GENERATION and self.is_empty:
            return
        if generation > NO_GENERATION or member_id or group_instance_id is not None:
            self.check_member(member_id, group_instance_id)
            self.check_generation(generation)
        elif not is_transactional:
            message = f"The group '{self.group_id}' has members, so only a member may commit."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        if not is_transactional and self.state is _S.COMPLETING_REBALANCE:
            message = f"The group '{self.group_id}' waits for its leader's assignment."
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, message)

    def check_generation(self, generation: int) -> None:
        """Check the generation of a request.

        :raises KafkaError: ILLEGAL_GENERATION.
        """
        if generation != self.generation:
            message = f"The group's generation is {self.generation}, not {generation}."
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, message)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check an offset fetch, which any client may send for a classic group."""

    def on_commit(self, result: CoordinatorResult, member_id: str) -> None:
        """Handle a commit of a member, which counts as a heartbeat."""
        member = self.members.get(member_id)
        if member is not None and self.state in (_S.STABLE, _S.PREPARING_REBALANCE):
            await_heartbeat(result, self.group_id, member)

    def check_offset_deletion(self) -> None:
        """Check that offsets may be deleted: not if members do not publish their subscriptions.

        :raises KafkaError: NON_EMPTY_GROUP.
        """
        if self.protocol_type != CONSUMER:
            self.check_deletion()

    def check_deletion(self) -> None:
        """Check that the group may be deleted.

        :raises KafkaError: NON_EMPTY_GROUP.
        """
        if not self.is_empty:
            message = f"The group '{self.group_id}' has {len(self.members)} members."
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, message)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member may read a topic; True for consumers whose subscription is unknown."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER and bool(self.members)
        return topic in self.subscribed_topics

    @property
    def offsets_may_expire(self) -> bool:
        """Whether offsets of topics without subscribers may expire (KIP-211, KIP-496)."""
        if not self.protocol_type or self.is_empty:
            return True
        return self.state is _S.STABLE and self.subscribed_topics is not None

    def offsets_unused_since_ms(self) -> int | None:
        """Time since which the group is empty; None: count from each commit."""
        return self.state_since_ms if self.protocol_type and self.is_empty else None

    def append_tombstones(self, result: CoordinatorResult) -> None:
        """Append the tombstone of the group's record."""
        result.append(GroupMetadataKey(group=self.group_id), None)

    def validate(self) -> None:
        """Assert the invariants between events."""
        members = self.members
        assert (self.leader in members) if members else self.leader is None, (self.leader, self.story)
        assert self.static_members == {
            member.group_instance_id: member_id for member_id, member in members.items() if member.is_static
        }
        assert self.pending_members.keys().isdisjoint(members)
        assert self.unsynced_members <= members.keys()
        assert all(member_id == member.member_id for member_id, member in members.items())
        if self.state in (_S.COMPLETING_REBALANCE, _S.STABLE):
            assert members, self.story
            assert all(self.protocol in member.protocols for member in members.values())
        if self.state is not _S.PREPARING_REBALANCE:
            assert self.joining_count == 0, self.story
            assert self.initial_wait is None
        if self.state is not _S.COMPLETING_REBALANCE:
            assert all(member.syncing is None for member in members.values())
        assert self.state is not _S.EMPTY or not members
