"""The members of a classic group, and what they could agree on."""

from collections.abc import Collection

from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.wire.errors import ErrorCode, KafkaError


class Roster:
    """Who is in a group: a leader as long as there is anybody, static members under their instance ids."""

    def __init__(self) -> None:
        self.protocol_type = ""  #: `consumer`, `connect` ...; empty while no member has told
        self.leader: str | None = None  #: the id of a member; None when there are none
        self.members: dict[str, ClassicGroupMember] = {}  #: by id, in the order in which they came
        self.static_members: dict[str, str] = {}  #: group instance id -> member id
        #: ids given out, to come back with (KIP-394), in the order in which they were; a set
        self.pending_members: dict[str, None] = {}
        self.unsynced_members: set[str] = set()  #: of this generation, not heard of since they joined

    def add(self, member: ClassicGroupMember, protocol_type: str) -> None:
        """Take a member in; the first one leads, and says what the group is for."""
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
        """Let a member go, or forget an id that was given out; the oldest member leads if the leader goes."""
        self.pending_members.pop(member_id, None)
        self.unsynced_members.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, old: ClassicGroupMember, new: ClassicGroupMember) -> None:
        """Put a member in the place of another one with the same group instance id."""
        assert new.group_instance_id is not None
        assert old.group_instance_id == new.group_instance_id
        self.unsynced_members.discard(old.member_id)
        del self.members[old.member_id]
        self.members[new.member_id] = new
        self.static_members[new.group_instance_id] = new.member_id
        if self.leader == old.member_id:
            self.leader = new.member_id

    def elect_joined_leader(self) -> bool:
        """Have a member lead that has joined; False when none has."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        joined = next((member for member in self.members.values() if member.joining is not None), None)
        if joined is not None:
            self.leader = joined.member_id
        return joined is not None

    def check_member(self, member_id: str, group_instance_id: str | None) -> ClassicGroupMember:
        """The member that sends a request.

        :raises KafkaError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when another has taken the static member's place.
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
        """Whether nobody is waited for, not even those who have only been given an id."""
        return not self.pending_members and self.joining_count == len(self.members)

    @property
    def joining_count(self) -> int:
        """How many members wait for the answer to their JoinGroup."""
        return sum(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member may take to join; 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def all_know_one_of(self, protocols: Collection[str]) -> bool:
        """Whether one of these protocols is known to every member."""
        return any(all(name in member.protocols for member in self.members.values()) for name in protocols)

    def selected_protocol(self) -> str:
        """What most members like best of all that every member knows; the oldest of those who voted decides a draw."""
        known = [frozenset(member.protocols) for member in self.members.values()]
        candidates = frozenset.intersection(*known)
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)
