"""A server of a metadata store that consists of several, such as a member of etcd."""

from typing import NamedTuple


class StoreMember(NamedTuple):
    """A member as a broker reaches it; what is not known is empty or None."""

    address: str
    name: str = ""
    #: "leader", "follower", "learner" or "unknown"; None if the member is unavailable
    role: str | None = None
    version: str = ""
    size_bytes: int | None = None
    reason: str = ""  #: why it is unavailable
