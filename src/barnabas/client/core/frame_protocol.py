"""Splits what a connection receives into frames, and receives each into the memory that it stays in.

Asyncio's streams copy received data twice: with fetches of megabytes that is most of the work of receiving.
Allocating memory costs as much again, so a large frame reuses the memory of an earlier one that is no longer in use.
"""

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any, cast

from barnabas.base.buffers import Buffer

#: No broker sends more: beyond it the other side does not speak Kafka's protocol.
FRAME_BYTES_MAX = 1 << 30
#: A frame has at least a correlation id.
FRAME_BYTES_MIN = 4
#: Smaller responses are received together with their neighbours.
_ROOM_BYTES = 1 << 16
_SIZE = struct.Struct(">i")
#: Bytes of a large frame that must have arrived before the loop is woken.
AT_ONCE_BYTES = 1 << 20
#: Memory for large frames is allocated in multiples of this, because fetches are rarely of equal size.
_STEP_BYTES = 1 << 20
#: One frame is decoded while the next one comes.
_KEPT_COUNT = 2
#: Larger memory is freed as soon as it is no longer in use.
_KEPT_BYTES_MAX = 1 << 26


class FrameMemory:
    """Reusable memory for large frames; several threads may share one."""

    def __init__(self) -> None:
        self._kept: list[bytearray] = []
        self._taking = Lock()

    def take(self, size_bytes: int) -> memoryview:
        """Return memory of that size, with arbitrary content."""
        with self._taking:
            for memory in self._kept:
                if len(memory) >= size_bytes and _is_free(memory):
                    return memoryview(memory)[:size_bytes]
            memory = bytearray(-(-size_bytes // _STEP_BYTES) * _STEP_BYTES)
            if len(memory) <= _KEPT_BYTES_MAX:
                self._kept = [memory, *self._kept[: _KEPT_COUNT - 1]]
            return memoryview(memory)[:size_bytes]


def _is_free(memory: bytearray) -> bool:
    """Whether no memoryview of it is left: Python refuses to resize an array with exported buffers."""
    try:
        memory.append(memory.pop())
    except BufferError:
        return False
    return True


class Frames(asyncio.BufferedProtocol):
    """The protocol below a connection: passes on whole frames without their lengths, and reports the end."""

    transport: asyncio.WriteTransport  #: set when the connection is made

    def __init__(
        self,
        receive: Callable[[Buffer], None],
        refuse: Callable[[int], None],
        lose: Callable[[Exception | None], None],
        memory: FrameMemory | None = None,
    ) -> None:
        """All callbacks run on the loop. When `receive` or `refuse` closes the transport, no further frame is passed
        on.

        :param receive: Called with each frame.
        :param refuse: Called with a length that is not valid; closes the transport.
        :param lose: Called at the end, with the reason unless the other side closed the connection.
        :param memory: Memory for large frames, if it is to outlive the connection.
        """
        self._receive = receive
        self._refuse = refuse
        self._lose = lose
        self._room = memoryview(bytearray(_ROOM_BYTES))
        self._memory = memory or FrameMemory()
        self._frame: memoryview | None = None  #: a frame that has arrived in part
        self._filled_bytes = 0  #: of that frame, or of the buffer if there is none
        self._socket: Any = None
        self.is_encrypted = False
        self._awaited_bytes = 1  #: bytes to wait for before the socket reports data
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)
        self.is_encrypted = transport.get_extra_info("sslcontext") is not None
        if sys.platform == "linux" and not self.is_encrypted:  # a record may have arrived in part
            self._socket = transport.get_extra_info("socket")

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end; also called after the transport was closed from here."""
        self._writable.set()
        self._memory = FrameMemory()  # frees its own memory; memory that was passed in belongs to its owner
        self._lose(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes; never empty."""
        return (self._room if self._frame is None else self._frame)[self._filled_bytes :]

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on the complete frames."""
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
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def drain(self) -> None:
        """Wait until more may be written, or the connection has ended."""
        await self._writable.wait()

    def _take_apart(self) -> None:
        """Pass on the frames in the buffer, and move the rest to its front."""
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
        """Set the socket's low-water mark so that large frames arrive in large pieces; never above what is still to
        come.
        """
        awaited_bytes = AT_ONCE_BYTES if missing_bytes >= AT_ONCE_BYTES else 1
        if self._socket is not None and awaited_bytes != self._awaited_bytes:
            self._awaited_bytes = awaited_bytes
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited_bytes)

    def _begin(self, target: memoryview, begun: Buffer) -> None:
        target[: len(begun)] = begun
        self._filled_bytes = len(begun)
