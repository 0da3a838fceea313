"""Received data, in chunks of any size, is delivered as the frames that were sent."""

import asyncio
import itertools
import socket
import struct
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.buffers import Buffer
from barnabas.client.core import frame_protocol as frames
from barnabas.client.core.frame_protocol import AT_ONCE_BYTES, FRAME_BYTES_MAX, FrameMemory, Frames

#: More than enough time for an idle thread.
MAY_TAKE_S = 0.2


class Ear:
    """Records the protocol's callbacks, and is its transport; it closes after a number of frames."""

    def __init__(
        self,
        frames_max: int = 1_000,
        memory: FrameMemory | None = None,
        socket: socket.socket | None = None,
    ) -> None:
        self.socket = socket
        self.heard: list[bytes] = []
        self.kept: list[Buffer] = []
        self.refused: list[int] = []
        self.lost: list[Exception | None] = []
        self._frames_max = frames_max
        self.frames = Frames(self._receive, self._refuse, self.lost.append, memory)
        transport: Any = self
        self.frames.connection_made(transport)

    def get_extra_info(self, name: str) -> socket.socket | None:
        return self.socket if name == "socket" else None

    def is_closing(self) -> bool:
        return bool(self.refused) or len(self.heard) >= self._frames_max

    def _receive(self, frame: Buffer) -> None:
        self.heard.append(bytes(frame))
        self.kept.append(frame)

    def _refuse(self, size_bytes: int) -> None:
        self.refused.append(size_bytes)

    def feed(self, data: bytes, piece_bytes: int = 1 << 30) -> None:
        """Feed data as a transport does: as much as fits, at most a chunk at a time."""
        while data:
            room = self.frames.get_buffer(-1)
            count = min(len(room), len(data), piece_bytes)
            room[:count] = data[:count]
            self.frames.buffer_updated(count)
            data = data[count:]


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


@given(st.lists(st.binary(min_size=4, max_size=40), max_size=12), st.integers(1, 90))
def test_frames_are_delivered_whatever_the_chunks(bodies: list[bytes], piece_bytes: int) -> None:
    ear = Ear()
    ear.feed(framed(*bodies), piece_bytes)
    assert ear.heard == bodies


def test_a_frame_larger_than_the_buffer_is_delivered_with_its_neighbours() -> None:
    bodies = [b"before", bytes(range(256)) * 1_000, b"behind"]
    ear = Ear()
    ear.feed(framed(*bodies), 10_000)
    assert ear.heard == bodies


def awaited_bytes(connected: socket.socket) -> int:
    return connected.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


def test_a_large_frame_is_awaited_until_much_of_it_has_arrived() -> None:
    here, there = socket.socketpair()
    with here, there:
        ear = Ear(socket=here)
        coming = framed(bytes(2 * AT_ONCE_BYTES))
        ear.feed(coming[:100_000])
        assert awaited_bytes(here) == (AT_ONCE_BYTES if sys.platform == "linux" else 1)
        ear.feed(coming[100_000:])
        assert awaited_bytes(here) == 1


@given(
    st.lists(st.integers(4, 100) | st.integers(60_000, 3 * AT_ONCE_BYTES), min_size=1, max_size=4),
    st.lists(st.integers(1, 2 * AT_ONCE_BYTES), max_size=5),
)
def test_a_socket_never_waits_for_more_than_the_rest_of_a_frame(sizes: list[int], pieces: list[int]) -> None:
    here, there = socket.socketpair()
    with here, there:
        ear = Ear(socket=here)
        coming = memoryview(framed(*map(bytes, sizes)))
        ends = [*itertools.accumulate(4 + size for size in sizes)]
        fed = 0
        for piece in itertools.cycle([*pieces, AT_ONCE_BYTES]):
            if fed == len(coming):
                break
            ear.feed(bytes(coming[fed : fed + piece]))
            fed = min(fed + piece, len(coming))
            missing = next((end for end in ends if end > fed), fed + 1) - fed
            assert awaited_bytes(here) <= missing
    assert [len(each) for each in ear.heard] == sizes


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_large_frames_are_delivered_at_any_speed(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    bodies = [b"before", bytes(3 * AT_ONCE_BYTES + 5), b"between", bytes(AT_ONCE_BYTES), b"last"]
    sent = framed(*bodies)
    cuts = [0, 3, 20, 70_000, AT_ONCE_BYTES + 9, 3 * AT_ONCE_BYTES, len(sent) - 30, len(sent) - 2, len(sent)]

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for first, end in itertools.pairwise(cuts):
            writer.write(sent[first:end])
            await writer.drain()
            await asyncio.sleep(0.001)
        writer.close()

    async def scenario() -> list[bytes]:
        heard: list[bytes] = []
        over = asyncio.Event()
        server = await asyncio.start_server(send, "127.0.0.1", 0)
        async with server:
            protocol = Frames(lambda frame: heard.append(bytes(frame)), lambda _: None, lambda _: over.set())
            transport, _ = await asyncio.get_running_loop().create_connection(
                lambda: protocol, *server.sockets[0].getsockname()
            )
            await over.wait()
            transport.close()
        return heard

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(asyncio.wait_for(scenario(), 30)) == bodies


def test_a_connection_that_ends_within_a_large_frame_is_reported() -> None:
    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(struct.pack(">i", 3 * AT_ONCE_BYTES) + bytes(AT_ONCE_BYTES + 9))
        writer.close()

    async def scenario() -> None:
        over = asyncio.Event()
        server = await asyncio.start_server(send, "127.0.0.1", 0)
        async with server:
            protocol = Frames(lambda _: None, lambda _: None, lambda _: over.set())
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: protocol, *server.sockets[0].getsockname())
            await over.wait()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_frame_is_immutable_when_the_next_one_arrives() -> None:
    ear = Ear()
    bodies = [b"one!", b"2" * 200_000, b"three", b"4" * 200_000]
    ear.feed(framed(*bodies), 70_000)
    assert [bytes(each) for each in ear.kept] == bodies
    assert all(memoryview(each).readonly for each in ear.kept)


def test_the_memory_of_a_frame_is_reused_without_references() -> None:
    memory = FrameMemory()
    first = memory.take(1_000_000)
    part = first[10:20].toreadonly()
    second = memory.take(1_000_000)
    assert second.obj is not first.obj
    of_first = first.obj
    first.release()
    third = memory.take(1_000_000)  # a part of the first is referenced
    assert third.obj is not of_first
    of_second = second.obj
    del part, second
    assert memory.take(1_048_576).obj is of_second


def test_little_memory_is_kept_and_frames_get_what_they_need() -> None:
    memory = FrameMemory()
    sizes_bytes = [1, 3 << 20, 3 << 20, 65 << 20, 5 << 20]
    assert [len(memory.take(each)) for each in sizes_bytes] == sizes_bytes
    huge = memory.take(65 << 20).obj
    assert memory.take(65 << 20).obj is not huge


def test_shared_memory_outlives_the_connection_and_its_own_does_not() -> None:
    memory = FrameMemory()
    for shared, is_kept in ((memory, True), (None, False)):
        held = []
        for ear in (Ear(memory=shared), Ear(memory=shared)):
            ear.feed(framed(bytes(200_000)))
            held.append(memoryview(ear.kept.pop()).obj)
            ear.frames.connection_lost(None)
        assert (held[0] is held[1]) is is_kept


def test_threads_that_share_memory_never_get_the_same_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FrameMemory()
    memory.take(1_000).release()
    others: list[Future[memoryview]] = []
    is_free = frames._is_free

    def found_free_while_another_thread_takes(kept: bytearray) -> bool:
        free = is_free(kept)
        if not others:
            others.append(pool.submit(memory.take, 1_000))
            wait(others, MAY_TAKE_S)
        return free

    monkeypatch.setattr(frames, "_is_free", found_free_while_another_thread_takes)
    with ThreadPoolExecutor(1) as pool:
        mine = memory.take(1_000)
        assert others[0].result().obj is not mine.obj


@pytest.mark.parametrize("size_bytes", [-1, 0, 3, FRAME_BYTES_MAX + 1])
def test_an_invalid_length_is_rejected_and_nothing_after_it_is_delivered(size_bytes: int) -> None:
    ear = Ear()
    ear.feed(framed(b"good") + struct.pack(">i", size_bytes) + b"what is this?")
    assert (ear.heard, ear.refused) == ([b"good"], [size_bytes])


def test_nothing_is_delivered_after_the_transport_is_closed() -> None:
    ear = Ear(frames_max=1)
    ear.feed(framed(b"last", b"too late"))
    assert ear.heard == [b"last"]


def test_the_end_is_reported_with_its_reason() -> None:
    ear = Ear()
    error = ConnectionResetError()
    ear.frames.connection_lost(error)
    assert ear.lost == [error]


def test_writers_wait_for_a_slow_reader_until_it_resumes_or_disconnects() -> None:
    async def scenario() -> None:
        ear = Ear()
        await ear.frames.drain()
        for go_on in (ear.frames.resume_writing, lambda: ear.frames.connection_lost(None)):
            ear.frames.pause_writing()
            waiting = asyncio.ensure_future(ear.frames.drain())
            await asyncio.sleep(0)
            assert not waiting.done()
            go_on()
            await waiting

    asyncio.run(scenario())
