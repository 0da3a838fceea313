"""Short ways: what one connection sends again and again is answered without building messages.

A short way makes the same checks, writes the same and gives the same answers, byte for byte, as the handler of its API
does, for all requests that arrived together at once. What it has found out about one request it remembers, so that the
next is known by comparing bytes. Whatever has another form, must wait, or fails, is left to the handler: nothing has
been done about it then.
"""

import struct
from typing import Protocol

from barnabas.api.context import ConnectionInfo, Node
from barnabas.quotas.manager import ClientQuotas
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.framing import SIZE_BYTES, FrameReader

KEY_AND_VERSION = struct.Struct(">hh")  #: of an API, behind a frame's size
CORRELATION_AT = SIZE_BYTES + KEY_AND_VERSION.size
#: Behind the correlation id: the client id, and so on.
COMMON_AT = CORRELATION_AT + 4

_unpack_size = struct.Struct(">i").unpack_from
_unpack_client_id_bytes = struct.Struct(">h").unpack_from


def frame_bytes_at(frames: FrameReader, position: int) -> int:
    """The size that a frame says it has, without that of the size."""
    size: int = _unpack_size(frames.data, position)[0]
    return size


def client_id_end(frames: FrameReader, position: int) -> int:
    """Where the client id of the request at `position` ends."""
    client_id_bytes: int = _unpack_client_id_bytes(frames.data, position + COMMON_AT)[0]
    return position + COMMON_AT + 2 + max(client_id_bytes, 0)


def client_id(frames: FrameReader, position: int) -> str:
    """The client id of the request at `position`; empty when it is null."""
    return str(frames.data[position + COMMON_AT + 2 : client_id_end(frames, position)], "utf-8")


class ShortWay(Protocol):
    """The short way of one API for one connection."""

    def take(self, frames: FrameReader) -> tuple[bytes, int]:
        """Do what stands next in `frames` as far as the short way leads, and move `frames` behind it.

        Gives back the answers in one piece, and how many they are.
        """

    def charge(self, elapsed_ns: int) -> None:
        """Count what was taken last, in `elapsed_ns`; nobody has to wait for that, as it was looked at before."""


class Asker:
    """Who asks on a connection: what they may do, and what is counted for them."""

    def __init__(self, node: Node, connection: ConnectionInfo) -> None:
        self._node = node
        self._connection = connection

    def permit(self) -> object:
        """What permissions and quotas rest on: they hold while this is the same."""
        authorizer, version = self._node.authorizer, self._node.quotas.version
        return version if authorizer is None else (version, authorizer.version, self._connection.principal)

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether that is allowed."""
        authorizer, connection = self._node.authorizer, self._connection
        return authorizer is None or authorizer.allows(
            connection.principal, connection.client_host, operation, resource_type, name
        )

    def quotas(self, client_id: str) -> ClientQuotas | None:
        """What holds for this user with that client id; None: nothing does."""
        quotas = self._node.quotas
        return quotas.of(self._connection.principal, client_id) if quotas.enabled else None
