"""Responses of a connection on their way to the transport. No IO.

The responses of one turn of the event loop are written together. Of larger ones, the transport gets a chunk at a time,
so that it buffers little for a client that reads slowly.
"""

from collections import deque

from barnabas.base.buffers import Buffer, is_truncated

#: Responses of a turn are joined into one buffer up to this size; larger ones are not copied.
JOINED_CHUNK_BYTES_MAX = 16 << 10

#: The size at which the responses of a turn are written before the turn is over.
TURN_BYTES_MAX = 64 << 10

#: The size at which a chunk ends; its last buffer may exceed it.
CHUNK_BYTES = 1 << 20


class RecordsTruncated(Exception):
    """Records of a response are not in the log any more; the rest of the response cannot be sent."""


class ResponseBuffer:
    def __init__(self) -> None:
        #: Whether larger buffers than a chunk are split. With TLS, all that the transport gets is encrypted at once;
        #: otherwise it hands views to the kernel, whatever their size.
        self.splits_buffers = False
        self._turn: list[Buffer] = []
        self.turn_bytes = 0  #: size of the responses of the present turn
        self.unsent: deque[Buffer] = deque()  #: from earlier turns

    def add(self, parts: list[Buffer]) -> None:
        """Add a response, whose buffers must not change any more: they may be written without a copy."""
        self._turn += parts
        for part in parts:
            self.turn_bytes += len(part)

    def end_turn(self) -> int:
        """Make the responses of the turn ready to be written, and return their size in bytes."""
        size_bytes = self.turn_bytes
        if size_bytes > CHUNK_BYTES and self.splits_buffers:
            self._turn = [piece for buffer in self._turn for piece in _split(buffer)]
        self.unsent += self._turn
        self._turn, self.turn_bytes = [], 0
        return size_bytes

    def next_chunk(self) -> list[Buffer]:
        """Remove and return the next buffers to write; empty if there are none.

        Small buffers are joined, because that costs less than writing each of them.

        :raises RecordsTruncated: The log was truncated after its records had been put into a response: a follower that
            led before does that, or a leader after an unclean election.
        """
        unsent = self.unsent
        chunk: list[Buffer] = []
        size_bytes = 0
        while unsent and size_bytes < CHUNK_BYTES:
            buffer = unsent.popleft()
            if is_truncated(buffer):
                raise RecordsTruncated("the log was truncated below the end of a response")
            size_bytes += len(buffer)
            chunk.append(buffer)
        if len(chunk) == 1:
            return chunk
        return [b"".join(chunk)] if 0 < size_bytes <= JOINED_CHUNK_BYTES_MAX else chunk

    def clear(self) -> None:
        self._turn, self.turn_bytes = [], 0
        self.unsent.clear()


def _split(buffer: Buffer) -> list[Buffer]:
    """Return views of the buffer, each no larger than a chunk."""
    if len(buffer) <= CHUNK_BYTES:
        return [buffer]
    view = memoryview(buffer)
    return [view[start : start + CHUNK_BYTES] for start in range(0, len(view), CHUNK_BYTES)]
