import struct
import tracemalloc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.wire.framing import FIRST_ALLOCATION_BYTES, FrameReader, InvalidFrameError

FRAME_BYTES_MAX = 100_000


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def feed(reader: FrameReader, data: bytes, most_bytes: int) -> list[bytes]:
    """Feed `data` as a transport does: never more than the buffer takes, nor than `most_bytes`."""
    frames = []
    position = 0
    while position < len(data):
        buffer = reader.buffer()
        assert len(buffer) > 0
        size = min(len(buffer), most_bytes, len(data) - position)
        buffer[:size] = data[position : position + size]
        reader.received(size)
        while (frame := reader.next_frame()) is not None:
            frames.append(bytes(frame))
        position += size
    return frames


def reader_with(scratch_bytes: int, frame_bytes_max: int = FRAME_BYTES_MAX) -> FrameReader:
    return FrameReader(bytearray(scratch_bytes), frame_bytes_max)


BODIES = st.lists(st.one_of(st.binary(max_size=40), st.integers(0, 700).map(lambda n: bytes([n % 251]) * n)))


@given(bodies=BODIES, scratch_bytes=st.integers(4, 600), cuts=st.lists(st.integers(1, 500), min_size=1))
def test_a_fragmented_stream_has_the_same_frames(
    bodies: list[bytes], scratch_bytes: int, cuts: list[int]
) -> None:
    reader = reader_with(scratch_bytes)
    stream = framed(*bodies)
    found: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        size = cuts[turn % len(cuts)]
        found += feed(reader, stream[position : position + size], size)
        position, turn = position + size, turn + 1
    assert found == bodies


@pytest.mark.parametrize("most_bytes", [1, 2, 3, 4, 5, 1000])
def test_a_size_that_arrives_byte_by_byte_is_decoded(most_bytes: int) -> None:
    bodies = [b"", b"a", b"bc" * 70, b"", b"d" * 300]
    assert feed(reader_with(64), framed(*bodies), most_bytes) == bodies


def test_a_frame_much_larger_than_the_first_allocation_is_received() -> None:
    body = bytes(range(256)) * (3 * FIRST_ALLOCATION_BYTES // 256)
    reader = reader_with(4096, 1 << 30)
    assert feed(reader, framed(b"before", body, b"after"), 60_000) == [b"before", body, b"after"]


def test_connections_that_share_a_scratch_buffer_do_not_mix_data() -> None:
    scratch = bytearray(64)
    one, two = FrameReader(scratch, 1000), FrameReader(scratch, 1000)
    first, second = framed(b"1" * 30), framed(b"2" * 40)
    found: dict[int, list[bytes]] = {1: [], 2: []}
    for at in range(44):
        found[1] += feed(one, first[at : at + 1], 1)
        found[2] += feed(two, second[at : at + 1], 1)
    assert found == {1: [b"1" * 30], 2: [b"2" * 40]}


@pytest.mark.parametrize("size", [-1, -(2**31), FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_an_invalid_size_is_rejected_with_its_value(size: int) -> None:
    with pytest.raises(
        InvalidFrameError, match=f"a frame of {size} bytes: 0 to {FRAME_BYTES_MAX} are accepted"
    ):
        feed(reader_with(64), struct.pack(">i", size), 64)


@pytest.mark.parametrize("size", [0, FRAME_BYTES_MAX])
def test_sizes_at_the_limits_are_accepted(size: int) -> None:
    assert feed(reader_with(64), framed(bytes(size)), 64) == [bytes(size)]


def test_frames_before_an_invalid_size_are_returned_first() -> None:
    reader = reader_with(64)
    data = framed(b"good") + struct.pack(">i", -1)
    reader.buffer()[: len(data)] = data
    reader.received(len(data))
    assert reader.next_frame() == b"good"
    with pytest.raises(InvalidFrameError):
        reader.next_frame()


def test_the_buffer_of_a_large_frame_lives_as_long_as_its_views() -> None:
    scratch, body = bytearray(64), bytes(range(200))
    reader = FrameReader(scratch, FRAME_BYTES_MAX)
    for part in (framed(body)[:64], framed(body)[64:]):
        reader.buffer()[: len(part)] = part
        reader.received(len(part))
        frame = reader.next_frame()
    assert frame is not None
    assert reader.data is not scratch
    buffer = weakref.ref(reader.view)
    assert reader.next_frame() is None
    assert reader.data is scratch
    assert buffer() is None
    assert feed(reader, framed(b"next"), 64) == [b"next"]
    assert frame == body


@pytest.mark.parametrize("body_bytes", [10, 3 * FIRST_ALLOCATION_BYTES])
def test_an_incomplete_frame_is_not_returned(body_bytes: int) -> None:
    reader = reader_with(64, 1 << 30)
    data = framed(bytes(body_bytes))
    at = 0
    while at < len(data):
        assert reader.position == reader.end
        buffer = reader.buffer()
        size = min(len(buffer), 5000, len(data) - at)
        buffer[:size] = data[at : at + size]
        at += size
        reader.received(size)
        if at < len(data):
            assert reader.next_frame() is None
    assert bytes(reader.data[reader.position : reader.end]) == data


def test_an_announced_size_costs_little_memory() -> None:
    reader = reader_with(4096, 1 << 30)
    tracemalloc.start()
    try:
        feed(reader, struct.pack(">i", 1 << 30) + b"x" * 10, 4096)
        claimed_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert claimed_bytes < 2 * FIRST_ALLOCATION_BYTES


@settings(max_examples=20)
@given(st.integers(0, 6 * FIRST_ALLOCATION_BYTES))
def test_memory_grows_with_the_received_bytes(arrived_bytes: int) -> None:
    reader = reader_with(1 << 16, 1 << 30)
    feed(reader, struct.pack(">i", 1 << 30) + bytes(arrived_bytes), 1 << 20)
    assert reader._frame is not None
    assert len(reader._frame) <= max(FIRST_ALLOCATION_BYTES, 4 * (arrived_bytes + 1))
    assert len(reader.buffer()) > 0
