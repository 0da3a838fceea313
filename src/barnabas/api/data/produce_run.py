"""Produce requests that stand one behind the other and differ in little more than their batches.

Those of one size have every field in the same place: what is to be the same is compared, and the headers of the batches
are unpacked, for each request by one call.
"""

import struct
from dataclasses import dataclass, field

from barnabas.api.short_way import COMMON_AT, CORRELATION_AT, frame_bytes_at
from barnabas.wire.framing import SIZE_BYTES, FrameReader
from barnabas.wire.primitives import read_uvarint
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, BATCH_HEADER_FORMAT, HeadedBatch

#: Requests that are taken at once at most: their batches are written by one system call.
RUN_COUNT_MAX = 512

#: Sizes of requests of which the shape is remembered.
SHAPES_COUNT_MAX = 64

_END = b"\0\0\0"  #: no tagged fields of partition, topic and request


@dataclass(slots=True)
class Run:
    """Requests that were found; the lists are of one length."""

    batches: list[HeadedBatch] = field(default_factory=list)
    correlation_ids: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  #: where each request ends


@dataclass(slots=True, frozen=True)
class _Shape:
    """What requests of one size have in common."""

    start: bytes  #: size, API key and version
    common: bytes  #: from behind the correlation id up to the batch
    batch_at: int
    batch_end: int
    #: `start`, correlation id, `common`, the fields of the batch's header, the end
    fields: struct.Struct


@dataclass(slots=True, frozen=True)
class AlikeRequests:
    """Requests with one batch each, from one client to one partition."""

    start: bytes  #: API key and version
    common: bytes  #: from behind the correlation id up to the partition's index
    _shapes: dict[int, _Shape] = field(default_factory=dict)  #: by the size of a frame

    def collect(self, frames: FrameReader) -> Run:
        """Those that stand next in `frames`, which is left where it is."""
        run, position = Run(), frames.position
        while (shape := self._shape_of_next(frames, position)) is not None:
            before, size_bytes = position, shape.fields.size
            count_max = min((frames.end - position) // size_bytes, RUN_COUNT_MAX - len(run.ends))
            position = _collect(frames.view, position, position + count_max * size_bytes, shape, run)
            if position == before:
                break
        return run

    def _shape_of_next(self, frames: FrameReader, position: int) -> _Shape | None:
        """The shape that the request at `position` has if it is one of these; None when it is none, or not whole."""
        if position + SIZE_BYTES > frames.end:
            return None
        frame_bytes = frame_bytes_at(frames, position)
        end = position + SIZE_BYTES + frame_bytes
        if not position < end <= frames.end or frame_bytes > frames.frame_bytes_max:
            return None
        shape = self._shapes.get(frame_bytes)
        if shape is None:
            shape = self._make_shape(frames, position, end)
            if shape is not None:
                self._shapes[frame_bytes] = shape
        return shape

    def _make_shape(self, frames: FrameReader, position: int, end: int) -> _Shape | None:
        """None when a request is too short for a batch's header, or its batch ends elsewhere than the request."""
        data, records_at = frames.data, position + COMMON_AT + len(self.common)
        if records_at >= end:
            return None
        size, batch_at = read_uvarint(data, records_at)
        batch_end = batch_at + size - 1
        rest_bytes = size - 1 - BATCH_HEADER_BYTES
        if batch_end + len(_END) != end or rest_bytes < 0:
            return None
        if len(self._shapes) >= SHAPES_COUNT_MAX:
            self._shapes.clear()
        common = self.common + bytes(data[records_at:batch_at])
        return _Shape(
            start=bytes(data[position : position + SIZE_BYTES]) + self.start,
            common=common,
            batch_at=batch_at - position,
            batch_end=batch_end - position,
            fields=struct.Struct(
                f">{CORRELATION_AT}s4s{len(common)}s{BATCH_HEADER_FORMAT}{rest_bytes}x{len(_END)}s"
            ),
        )


def _collect(view: memoryview, position: int, end: int, shape: _Shape, run: Run) -> int:
    """Add the requests of one shape that stand between `position` and `end`; gives where the last of them ends."""
    start, common, size_bytes = shape.start, shape.common, shape.fields.size
    batch_at, batch_end = shape.batch_at, shape.batch_end
    batches, correlation_ids, ends = run.batches, run.correlation_ids, run.ends
    for fields in shape.fields.iter_unpack(view[position:end]):
        if fields[0] != start or fields[2] != common or fields[-1] != _END:
            break
        batches.append((fields[3:-1], view[position + batch_at : position + batch_end]))
        correlation_ids.append(fields[1])
        position += size_bytes
        ends.append(position)
    return position
