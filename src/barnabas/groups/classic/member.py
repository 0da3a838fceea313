"""A member of a classic group."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from barnabas.coordinator.result import Pending
from barnabas.groups.rebalance_history import GroupMember
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse


@dataclass(slots=True)
class ClassicGroupMember:
    member_id: str
    group_instance_id: str | None  #: of a static member (KIP-345)
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    #: protocol -> metadata of the member, in the order of its preference
    protocols: Mapping[str, bytes]
    assignment: bytes = b""
    is_new: bool = False  #: its first JoinGroup is not answered, so it cannot send heartbeats
    joining: Pending[JoinGroupResponse] | None = None  #: the JoinGroup that waits for its response
    syncing: Pending[SyncGroupResponse] | None = None  #: the SyncGroup that waits for its response

    @property
    def identity(self) -> GroupMember:
        return GroupMember(self.member_id, self.group_instance_id, self.client_id, self.client_host)

    @property
    def is_static(self) -> bool:
        """Whether the member keeps its assignment while it is away."""
        return self.group_instance_id is not None

    @property
    def needs_heartbeats(self) -> bool:
        """Whether the session timeout applies; it does not while a request of the member waits."""
        return self.is_new or (self.joining is None and self.syncing is None)

    def matches(self, protocols: Mapping[str, bytes]) -> bool:
        """Return whether the member has these protocols, in this order, with this metadata."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: "frozenset[str] | set[str]") -> str:
        """Return the candidate that the member prefers."""
        return next(name for name in self.protocols if name in candidates)

    def renamed(self, member_id: str) -> "ClassicGroupMember":
        """Return the same member under a new id, without waiting requests."""
        return replace(self, member_id=member_id, is_new=False, joining=None, syncing=None)
