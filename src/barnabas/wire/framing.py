"""Splits a byte stream into frames: an int32 size, then as many bytes. No IO."""

import struct

_SIZE = struct.Struct(">i")
SIZE_BYTES = _SIZE.size

#: The largest read from a socket. A larger frame is received into its own buffer, which is not reused.
SCRATCH_BYTES = 256 << 10

#: The initial size of a frame's buffer at most: a claimed size must not cost memory.
FIRST_ALLOCATION_BYTES = 128 << 10


class InvalidFrameError(Exception):
    """A frame with an invalid size; the rest of the connection cannot be parsed."""


class FrameReader:
    """Provides the buffer for received bytes, and returns complete frames.

    Small frames are cut out of `scratch`, which all connections of one thread share; a frame that does not fit is
    received into its own buffer. After `received`, the frames lie between `position` and `end` of `data`: take
    them with `next_frame` until it returns None, or parse the bytes and move `position` behind a complete frame. Frames
    stay valid until more is received. A frame's own buffer lives only as long as a view of it.
    """

    def __init__(self, scratch: bytearray, frame_bytes_max: int) -> None:
        self._scratch = scratch
        self._scratch_view = memoryview(scratch)
        self.frame_bytes_max = frame_bytes_max
        self._head = b""  #: up to three bytes of a size
        self._frame: bytearray | None = None  #: the incomplete frame, with its size
        self._frame_bytes = 0
        self._filled_bytes = 0  #: received bytes of `_frame`
        self.data = scratch
        self.view = self._scratch_view
        self.position = 0
        self.end = 0

    def buffer(self) -> memoryview:
        """Return the buffer for the next bytes; never empty."""
        if self._frame is None:
            return self._scratch_view[len(self._head) :]
        return memoryview(self._frame)[self._filled_bytes :]

    def received(self, size_bytes: int) -> None:
        """Account for `size_bytes` received into `buffer()`."""
        if self._frame is not None:
            self._fill(self._frame, size_bytes)
            return
        self.data, self.view = self._scratch, self._scratch_view
        head_bytes = len(self._head)
        if head_bytes:
            self.data[:head_bytes] = self._head
            self._head = b""
        self.position, self.end = 0, head_bytes + size_bytes

    def next_frame(self) -> memoryview | None:
        """Return the next complete frame without its size; None if there is none, and the rest is kept.

        :raises InvalidFrameError: When a size is negative or too large.
        """
        if self.position == self.end:
            if self.data is not self._scratch:
                self._leave_frame()
            return None
        start = self.position + SIZE_BYTES
        if start > self.end:
            self._head = bytes(self.view[self.position : self.end])
            self.position = self.end
            return None
        frame_bytes = _SIZE.unpack_from(self.data, self.position)[0]
        if not 0 <= frame_bytes <= self.frame_bytes_max:
            message = f"a frame of {frame_bytes} bytes: 0 to {self.frame_bytes_max} are accepted"
            raise InvalidFrameError(message)
        if start + frame_bytes > self.end:
            self._begin(SIZE_BYTES + frame_bytes)
            return None
        self.position = start + frame_bytes
        return self.view[start : self.position]

    def _begin(self, frame_bytes: int) -> None:
        beginning = self.view[self.position : self.end]
        self._frame = bytearray(min(frame_bytes, max(FIRST_ALLOCATION_BYTES, 2 * len(beginning))))
        self._frame[: len(beginning)] = beginning
        self._frame_bytes, self._filled_bytes = frame_bytes, len(beginning)
        self.position = self.end

    def _leave_frame(self) -> None:
        """Leave a frame's own buffer to those who have a view of it; the connection may be idle for long."""
        self.data, self.view = self._scratch, self._scratch_view
        self.position = self.end = 0

    def _fill(self, frame: bytearray, size_bytes: int) -> None:
        self._filled_bytes += size_bytes
        if self._filled_bytes == self._frame_bytes:
            self._frame = None
            self.data, self.view = frame, memoryview(frame)
            self.position, self.end = 0, len(frame)
        elif self._filled_bytes == len(frame):
            self._frame = bytearray(min(self._frame_bytes, 4 * len(frame)))
            self._frame[: len(frame)] = frame
