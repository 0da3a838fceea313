"""The frames that a connection brings, each received into the memory that it stays in.

Streams of asyncio copy what comes twice more: with fetches of megabytes, most of the work of receiving them. New memory
costs as much again, so a large frame is received into that of an earlier one, as soon as nobody looks at it.
"""

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any, cast

from barnabas.base.buffers import Buffer

#: More than any broker sends: beyond it the other side is surely not Kafka.
FRAME_BYTES_MAX = 1 << 30
#: A frame has a correlation id at least.
FRAME_BYTES_MIN = 4
#: Answers that are smaller come together with those around them.
_ROOM_BYTES = 1 << 16
_SIZE = struct.Struct(">i")
#: What there is to be of a large frame before it is looked at, as each time wakes the loop.
AT_ONCE_BYTES = 1 << 20
#: Memory for large frames is made in multiples of this, as one fetch is hardly ever as large as the next.
_STEP_BYTES = 1 << 20
#: One frame is decoded while the next one comes.
_KEPT_COUNT = 2
#: Memory of more is given back as soon as nobody looks at it.
_KEPT_BYTES_MAX = 1 << 26


class FrameMemory:
    """Memory for large frames, taken again when nobody looks at what it held; threads may share one."""

    def __init__(self) -> None:
        self._kept: list[bytearray] = []
        self._taking = Lock()

    def take(self, size_bytes: int) -> memoryview:
        """So many bytes, whatever is in them."""
        with self._taking:
            for memory in self._kept:
                if len(memory) >= size_bytes and _is_free(memory):
                    return memoryview(memory)[:size_bytes]
            memory = bytearray(-(-size_bytes // _STEP_BYTES) * _STEP_BYTES)
            if len(memory) <= _KEPT_BYTES_MAX:
                self._kept = [memory, *self._kept[: _KEPT_COUNT - 1]]
            return memoryview(memory)[:size_bytes]


def _is_free(memory: bytearray) -> bool:
    """Whether no view of it is left: Python lets nobody change the size of what is looked at."""
    try:
        memory.append(memory.pop())
    except BufferError:
        return False
    return True


class Frames(asyncio.BufferedProtocol):
    """The protocol below a connection: hands on whole frames, without their lengths, and tells of the end."""

    transport: asyncio.WriteTransport  #: there once the connection is

    def __init__(
        self,
        receive: Callable[[Buffer], None],
        refuse: Callable[[int], None],
        lose: Callable[[Exception | None], None],
        memory: FrameMemory | None = None,
    ) -> None:
        """All are called on the loop; when one of the first two closes the transport nothing more is handed on.

        :param receive: Is given each frame.
        :param refuse: Is given a length that no frame has, and closes the transport.
        :param lose: Is told of the end, and its reason if it is not that the other side wanted it.
        :param memory: For large frames, where it is to outlast the connection.
        """
        self._receive = receive
        self._refuse = refuse
        self._lose = lose
        self._room = memoryview(bytearray(_ROOM_BYTES))
        self._memory = memory or FrameMemory()
        self._frame: memoryview | None = None  #: one that has not come whole yet
        self._filled_bytes = 0  #: of that frame; of the room when there is none
        self._socket: Any = None
        self._awaited_bytes = 1  #: of what comes next, before the socket tells of it
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The beginning."""
        self.transport = cast("asyncio.WriteTransport", transport)
        if sys.platform == "linux":
            self._socket = transport.get_extra_info("socket")

    def connection_lost(self, exc: Exception | None) -> None:
        """The end; also after the transport was closed from here."""
        self._writable.set()
        self._memory = FrameMemory()  # what was its own is given back, what was given to it is its owner's
        self._lose(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go; never empty."""
        return (self._room if self._frame is None else self._frame)[self._filled_bytes :]

    def buffer_updated(self, nbytes: int) -> None:
        """Hand on what has come whole."""
        self._filled_bytes += nbytes
        if self._frame is None:
            self._take_apart()
            return
        missing_bytes = len(self._frame) - self._filled_bytes
        self._await(missing_bytes)
        if not missing_bytes:
            whole, self._frame, self._filled_bytes = self._frame, None, 0
            self._receive(whole.toreadonly())

    def pause_writing(self) -> None:
        """The other side does not keep up."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._writable.set()

    async def drain(self) -> None:
        """Wait until there is room for more to be written, or the connection has ended."""
        await self._writable.wait()

    def _take_apart(self) -> None:
        """Hand on the frames in the room; what is left of it begins the next one."""
        position, end = 0, self._filled_bytes
        while end - position >= _SIZE.size and not self.transport.is_closing():
            (size_bytes,) = _SIZE.unpack_from(self._room, position)
            if not FRAME_BYTES_MIN <= size_bytes <= FRAME_BYTES_MAX:
                return self._refuse(size_bytes)
            position += _SIZE.size
            if end - position < size_bytes:
                self._frame = self._memory.take(size_bytes)
                return self._begin(self._frame, self._room[position:end])
            self._receive(bytes(self._room[position : position + size_bytes]))
            position += size_bytes
        return self._begin(self._room, bytes(self._room[position:end]))

    def _await(self, missing_bytes: int) -> None:
        """Let the socket tell of what comes when there is much of it; never of more than is still to come."""
        awaited_bytes = AT_ONCE_BYTES if missing_bytes >= AT_ONCE_BYTES else 1
        if self._socket is not None and awaited_bytes != self._awaited_bytes:
            self._awaited_bytes = awaited_bytes
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited_bytes)

    def _begin(self, target: memoryview, begun: Buffer) -> None:
        target[: len(begun)] = begun
        self._filled_bytes = len(begun)
