"""JoinGroup to a classic group (KIP-345, KIP-394, KIP-814)."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple
from uuid import UUID

from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.groups.classic.rebalance import Rebalances
from barnabas.groups.classic.records import assignments_of, group_record
from barnabas.groups.classic.responses import joined, not_joined, refuse_joining, refuse_syncing
from barnabas.groups.classic.states import ClassicState
from barnabas.groups.classic.timers import NEW_MEMBER_JOIN_MS, await_heartbeat, session_timer
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_WITH_KNOWN_MEMBER_ID = 4  #: KIP-394
FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT = 9  #: KIP-814

#: Maximum length of the client id in a member id.
_PREFIX_LENGTH_MAX = 255

#: Member ids that were given out but not used yet (KIP-394): maximum for one group, and for all groups of a shard.
#: Beyond, the oldest are removed, and a member that rejoins with one gets another.
GROUP_PENDING_MEMBERS_MAX, PENDING_MEMBERS_MAX = 1_000, 2_000

_S = ClassicState


class JoiningClient(NamedTuple):
    """The client of a JoinGroup, and the version of the request."""

    client_id: str
    client_host: str
    version: int


class Join(NamedTuple):
    """A JoinGroup in progress."""

    request: JoinGroupRequest
    client: JoiningClient
    pending: Pending[JoinGroupResponse]

    @property
    def protocols(self) -> dict[str, bytes]:
        """The member's protocols with their metadata, in the order of its preference."""
        return {protocol.name: bytes(protocol.metadata) for protocol in self.request.protocols}

    @property
    def why(self) -> str:
        """The client's reason (KIP-800)."""
        return self.request.reason or "not provided"

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the member may take to rejoin; before version 1 its session timeout."""
        given = self.request.rebalance_timeout_ms
        return self.request.session_timeout_ms if self.client.version < 1 else given


class Joining:
    """Adds members to groups."""

    def __init__(self, config: Callable[[], BrokerConfig], rng: Random, rebalances: Rebalances) -> None:
        self._config = config
        self._rng = rng
        self._rebalances = rebalances
        #: (group id, member id) of pending members, the oldest first; some may have been removed since
        self._pending: dict[tuple[str, str], ClassicGroup] = {}

    def join(self, step: CoordinatorResult, group: ClassicGroup, join: Join) -> None:
        """Answer, or keep the request until all members have joined.

        :raises KafkaError: INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        member_id = join.request.member_id
        if not self._has_room(group, member_id):
            group.remove(member_id)
            step.cancel_timer(session_timer(group.group_id, member_id))
            step.answer(join.pending, not_joined(ErrorCode.GROUP_MAX_SIZE_REACHED))
            return
        self._check_protocols(group, join)
        if member_id in group.pending_members:
            self._check_dynamic(join)
            self._add(step, group, join, member_id)
        elif member_id:
            self._rejoin(step, group, join)
        else:
            self._join_again(step, group, join)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        size_max = self._config().integer("group.max.size")
        member = group.members.get(member_id)
        if group.state is _S.EMPTY:
            return True
        if group.state is _S.PREPARING_REBALANCE:  # if there are too many members, the last ones are refused
            return (member is not None and member.joining is not None) or group.joining_count < size_max
        return member is not None or len(group.members) < size_max

    @staticmethod
    def _check_protocols(group: ClassicGroup, join: Join) -> None:
        protocol_type, names = join.request.protocol_type, [each.name for each in join.request.protocols]
        if not group.supports(protocol_type, names):
            message = (
                f"A member of type '{protocol_type}' with protocols {names} cannot be in the group "
                f"'{group.group_id}' of type '{group.protocol_type}': all members must share a protocol."
            )
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)

    @staticmethod
    def _check_dynamic(join: Join) -> None:
        """Check that a static member does not use the id of a dynamic one."""
        if join.request.group_instance_id is not None:
            message = f"The id '{join.request.member_id}' was given to a member without a group instance id."
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)

    # A new member

    def _join_again(self, step: CoordinatorResult, group: ClassicGroup, join: Join) -> None:
        instance_id = join.request.group_instance_id
        prefix = join.client.client_id if instance_id is None else instance_id
        member_id = f"{prefix[:_PREFIX_LENGTH_MAX]}-{UUID(int=self._rng.getrandbits(128), version=4)}"
        if instance_id is None and join.client.version >= FIRST_VERSION_WITH_KNOWN_MEMBER_ID:
            self._give_out(step, group, member_id, join.request.session_timeout_ms)
            step.answer(join.pending, not_joined(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        elif instance_id in group.static_members:
            self._replace(step, group, join, group.members[group.static_members[instance_id]], member_id)
        else:
            self._add(step, group, join, member_id)

    def _give_out(
        self, step: CoordinatorResult, group: ClassicGroup, member_id: str, session_timeout_ms: int
    ) -> None:
        """Register a pending member id, unless there are too many."""
        group.pending_members[member_id] = None
        self._pending[group.group_id, member_id] = group
        step.set_timer(session_timer(group.group_id, member_id), session_timeout_ms)
        if len(group.pending_members) > GROUP_PENDING_MEMBERS_MAX:
            self._take_back(step, group, next(iter(group.pending_members)))
        while len(self._pending) > PENDING_MEMBERS_MAX:
            (_, oldest), its_group = next(iter(self._pending.items()))
            self._take_back(step, its_group, oldest)

    def _take_back(self, step: CoordinatorResult, group: ClassicGroup, member_id: str) -> None:
        """Remove a pending member id if it has not been used."""
        self._pending.pop((group.group_id, member_id), None)
        if member_id in group.pending_members:
            step.cancel_timer(session_timer(group.group_id, member_id))
            group.remove(member_id)
            self._rebalances.maybe_complete_join(step, group)

    def _add(self, step: CoordinatorResult, group: ClassicGroup, join: Join, member_id: str) -> None:
        request, client = join.request, join.client
        self._pending.pop((group.group_id, member_id), None)
        member = ClassicGroupMember(
            member_id,
            request.group_instance_id,
            client.client_id,
            client.client_host,
            join.rebalance_timeout_ms,
            request.session_timeout_ms,
            join.protocols,
            is_new=True,
            joining=join.pending,
        )
        group.add(member, request.protocol_type)
        if group.initial_wait is not None:
            group.initial_wait = group.initial_wait._replace(is_extended=True)
        step.set_timer(session_timer(group.group_id, member_id), NEW_MEMBER_JOIN_MS)
        self._rebalances.maybe_rebalance(step, group, f"{member_id} joins; its reason: {join.why}")

    # A static member without its member id

    def _replace(
        self,
        step: CoordinatorResult,
        group: ClassicGroup,
        join: Join,
        old: ClassicGroupMember,
        member_id: str,
    ) -> None:
        refuse_joining(step, old, ErrorCode.FENCED_INSTANCE_ID, old.member_id)
        fenced = KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"'{member_id}' has replaced '{old.member_id}'.")
        refuse_syncing(step, old, fenced)
        leader = group.leader
        member = old.renamed(member_id)
        self._update(member, join)
        group.replace(old, member)
        await_heartbeat(step, group.group_id, member)
        if group.state is _S.STABLE and group.selected_protocol() == group.protocol:
            self._store_replaced(step, group, join, old, member, leader or "")
            return
        member.joining = join.pending
        self._rebalances.maybe_rebalance(
            step, group, f"{member_id} replaces {old.member_id}; its reason: {join.why}"
        )

    @staticmethod
    def _store_replaced(
        step: CoordinatorResult,
        group: ClassicGroup,
        join: Join,
        old: ClassicGroupMember,
        new: ClassicGroupMember,
        leader: str,
    ) -> None:
        """Replace the member, which keeps its assignment without a rebalance."""
        step.append(GroupMetadataKey(group=group.group_id), group_record(group, assignments_of(group)))
        if join.client.version >= FIRST_VERSION_WITH_SKIPPED_ASSIGNMENT:
            response = joined(group, new.member_id, skip_assignment=group.leader == new.member_id)
        else:  # older clients would assign again if they knew that they lead
            response = joined(group, new.member_id)
            response.leader, response.members = leader, []
        step.answer(join.pending, response)

        def put_back(instead: CoordinatorResult, error: KafkaError) -> None:
            group.replace(new, old)
            await_heartbeat(instead, group.group_id, old)
            instead.answer(join.pending, not_joined(error.code))

        step.otherwise = put_back

    # A known member

    def _rejoin(self, step: CoordinatorResult, group: ClassicGroup, join: Join) -> None:
        member = group.check_member(join.request.member_id, join.request.group_instance_id)
        if self._must_rebalance(group, member, join):
            earlier = member.joining
            if earlier is not None:  # its connection was lost, else it would not join again
                step.answer(earlier, not_joined(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            self._update(member, join)
            member.joining = join.pending
            self._rebalances.maybe_rebalance(
                step, group, f"{member.member_id} joins anew; its reason: {join.why}"
            )
        else:
            response = joined(group, member.member_id)
            step.answer(join.pending, response)

    @staticmethod
    def _must_rebalance(group: ClassicGroup, member: ClassicGroupMember, join: Join) -> bool:
        """Return whether a new generation is required: the leader requests one by rejoining."""
        if group.state is _S.PREPARING_REBALANCE or not member.matches(join.protocols):
            return True
        return group.state is _S.STABLE and group.leader == member.member_id

    @staticmethod
    def _update(member: ClassicGroupMember, join: Join) -> None:
        member.protocols = join.protocols
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms
