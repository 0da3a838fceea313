"""One member of a classic group."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from barnabas.coordinator.result import Pending
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse


@dataclass(slots=True)
class ClassicGroupMember:
    """Who it is, what it can do, and what it waits for."""

    member_id: str
    group_instance_id: str | None  #: of a static member (KIP-345)
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    #: protocol -> what the member tells those who speak it; the one that it likes best comes first
    protocols: Mapping[str, bytes]
    assignment: bytes = b""
    is_new: bool = False  #: its first join has not been answered yet, so it cannot send heartbeats
    joining: Pending[JoinGroupResponse] | None = None  #: the JoinGroup that waits for its answer
    syncing: Pending[SyncGroupResponse] | None = None  #: the SyncGroup that waits for its answer

    @property
    def is_static(self) -> bool:
        """Whether it keeps its place while it is away."""
        return self.group_instance_id is not None

    @property
    def needs_heartbeats(self) -> bool:
        """Whether it must be heard of: a member that waits for an answer of ours is there."""
        return self.is_new or (self.joining is None and self.syncing is None)

    def matches(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether these are its protocols, in its order, with what it says."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: "frozenset[str] | set[str]") -> str:
        """The candidate that it likes best."""
        return next(name for name in self.protocols if name in candidates)

    def renamed(self, member_id: str) -> "ClassicGroupMember":
        """The same member under a new id, waiting for nothing."""
        return replace(self, member_id=member_id, is_new=False, joining=None, syncing=None)
