"""Cutting a byte stream into frames: an int32 size, then as many bytes. No IO."""

import struct
from collections.abc import Iterator

_SIZE = struct.Struct(">i")

#: What a frame's buffer starts with at most: a size that is only claimed must not cost memory.
FIRST_ALLOCATION_BYTES = 128 << 10


class BadFrame(Exception):
    """A frame whose size cannot be: what follows on the connection has no meaning."""


class FrameReader:
    """Tells where to put what is received, and gives back the frames that are whole.

    Small frames are cut out of `scratch`, which all connections of one thread share; a frame that does not
    fit gets a buffer of its own and is received straight into it. A frame is a view that is valid until the
    next `received`.
    """

    def __init__(self, scratch: memoryview, frame_bytes_max: int) -> None:
        self._scratch = scratch
        self._frame_bytes_max = frame_bytes_max
        self._head = b""  #: up to three bytes of a size
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled_bytes = 0  #: of `_frame`

    def buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._frame is None:
            return self._scratch[len(self._head) :]
        return memoryview(self._frame)[self._filled_bytes :]

    def received(self, size_bytes: int) -> Iterator[memoryview]:
        """The frames that are whole now that `size_bytes` more stand in `buffer()`.

        :raises BadFrame: When a size is negative or too large.
        """
        if self._frame is None:
            return self._cut(size_bytes)
        return self._fill(self._frame, size_bytes)

    def _cut(self, size_bytes: int) -> Iterator[memoryview]:
        scratch = self._scratch
        head_bytes = len(self._head)
        if head_bytes:
            scratch[:head_bytes] = self._head
            self._head = b""
        position, end = 0, head_bytes + size_bytes
        while end - position >= 4:
            frame_bytes = self._check(_SIZE.unpack_from(scratch, position)[0])
            start = position + 4
            if start + frame_bytes > end:
                self._begin(frame_bytes, scratch[start:end])
                return
            position = start + frame_bytes
            yield scratch[start:position]
        self._head = bytes(scratch[position:end])

    def _check(self, frame_bytes: int) -> int:
        if not 0 <= frame_bytes <= self._frame_bytes_max:
            message = f"a frame of {frame_bytes} bytes: 0 to {self._frame_bytes_max} are accepted"
            raise BadFrame(message)
        return frame_bytes

    def _begin(self, frame_bytes: int, beginning: memoryview) -> None:
        self._frame = bytearray(min(frame_bytes, max(FIRST_ALLOCATION_BYTES, 2 * len(beginning))))
        self._frame[: len(beginning)] = beginning
        self._frame_bytes, self._filled_bytes = frame_bytes, len(beginning)

    def _fill(self, frame: bytearray, size_bytes: int) -> Iterator[memoryview]:
        self._filled_bytes += size_bytes
        if self._filled_bytes == self._frame_bytes:
            self._frame = None
            yield memoryview(frame)
        elif self._filled_bytes == len(frame):
            grown = bytearray(min(self._frame_bytes, 4 * len(frame)))
            grown[: len(frame)] = frame
            self._frame = grown
