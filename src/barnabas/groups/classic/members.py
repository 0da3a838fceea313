"""The members of a classic group, and the protocols that all of them support."""

from collections.abc import Collection

from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.wire.errors import ErrorCode, KafkaError


class GroupMembers:
    """The members of a group: the leader, static members by instance id, pending members."""

    def __init__(self) -> None:
        self.protocol_type = ""  #: `consumer`, `connect` ...; empty until a member joins
        self.leader: str | None = None  #: member id; None without members
        self.members: dict[str, ClassicGroupMember] = {}  #: by member id, in the order of joining
        self.static_members: dict[str, str] = {}  #: group instance id -> member id
        #: pending member ids (KIP-394), in order; a set
        self.pending_members: dict[str, None] = {}
        self.unsynced_members: set[str] = set()  #: members that have not sent SyncGroup for this generation

    def add(self, member: ClassicGroupMember, protocol_type: str) -> None:
        """Add a member; the first one leads, and sets the protocol type."""
        assert member.member_id not in self.members
        self.pending_members.pop(member.member_id, None)
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending member id; if the leader leaves, the oldest member leads."""
        self.pending_members.pop(member_id, None)
        self.unsynced_members.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, old: ClassicGroupMember, new: ClassicGroupMember) -> None:
        """Replace a member by another one with the same group instance id."""
        assert new.group_instance_id is not None
        assert old.group_instance_id == new.group_instance_id
        self.unsynced_members.discard(old.member_id)
        del self.members[old.member_id]
        self.members[new.member_id] = new
        self.static_members[new.group_instance_id] = new.member_id
        if self.leader == old.member_id:
            self.leader = new.member_id

    def elect_joined_leader(self) -> bool:
        """Let a member lead that has joined; return False if there is none."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        joined = next((member for member in self.members.values() if member.joining is not None), None)
        if joined is not None:
            self.leader = joined.member_id
        return joined is not None

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicGroupMember:
        """Return the member that sends a request.

        :raises KafkaError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member has the instance id.
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is not None and current != member_id:
                message = (
                    f"Another member with the instance id '{group_instance_id}' has replaced '{member_id}'."
                )
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, message)
            if current is None:
                message = f"The group has no member with the instance id '{group_instance_id}'."
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"The group has no member '{member_id}'.")
        return member

    @property
    def all_have_joined(self) -> bool:
        """Whether all members, and all pending ones, have joined."""
        return not self.pending_members and self.joining_count == len(self.members)

    @property
    def joining_count(self) -> int:
        """Number of members whose JoinGroup waits."""
        return sum(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def all_know_one_of(self, protocols: Collection[str]) -> bool:
        """Return whether all members support one of these protocols."""
        return any(all(name in member.protocols for member in self.members.values()) for name in protocols)

    def selected_protocol(self) -> str:
        """Return the protocol with most votes among those that all members support; the earliest vote decides a tie."""
        known = [frozenset(member.protocols) for member in self.members.values()]
        candidates = frozenset.intersection(*known)
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)
