"""Bad clients: damaged frames, half-open and slow connections, many at once. The node keeps serving in bounded
memory.
"""

import asyncio
import contextlib
import resource
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from support.admin import create, new_topic
from support.batches import batch, values_of
from support.fuzz import Fuzzed, RandomRequests
from support.nodes import frame_of
from support.process import BrokerProcess
from support.wire import Wire

MIB = 1 << 20
FRAMES_COUNT = 5_000  #: `make soak-frames` sends a million


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as broker:
        yield broker


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def assert_serves(port: int) -> None:
    started_s = time.monotonic()
    with Wire(port) as wire:
        topic = f"after-{time.monotonic_ns()}"
        create(wire, new_topic(topic))
        assert wire.produce(topic, batch(b"x")).error_code == 0
        assert values_of(wire.fetch(topic).records) == [b"x"]
    assert time.monotonic() - started_s < 5


def test_random_and_damaged_frames_cause_no_internal_error(kafka: EmbeddedBroker, wire: Wire) -> None:
    for name in ("a", "b"):
        kafka.create_topic(name, partitions=2)
        kafka.produce(name, "x")
    unhandled: list[object] = []

    async def remember_unhandled() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, met: unhandled.append(met))

    assert kafka._thread
    kafka._thread.run(remember_unhandled())
    requests = RandomRequests(7, [wire.topic_id("a"), wire.topic_id("b")])
    fuzzed = Fuzzed(kafka.port)
    for number in range(FRAMES_COUNT):
        fuzzed.send(requests.garbage() if number % 20 == 0 else requests.frame(number))
    fuzzed.close()
    assert dict(kafka.server.statistics.crashes) == {}
    assert unhandled == []
    assert fuzzed.answers_count > FRAMES_COUNT / 4
    assert fuzzed.closed_count > FRAMES_COUNT / 4
    assert fuzzed.waiting_count < FRAMES_COUNT / 1000
    assert_serves(kafka.port)


def test_1_000_idle_connections_cost_little_and_delay_no_client(
    broker: BrokerProcess, many_files: None
) -> None:
    assert_serves(broker.port)
    before_bytes = broker.anonymous_bytes
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(Wire(broker.port)) for _ in range(1000)]
        assert_serves(broker.port)
        assert broker.anonymous_bytes - before_bytes < 30 * MIB
        for wire in idle[::100]:
            wire.ask(ApiVersionsRequest(), 0)
    assert_serves(broker.port)


def test_incomplete_requests_cost_the_memory_of_received_bytes_only(broker: BrokerProcess) -> None:
    assert_serves(broker.port)
    before_bytes = broker.anonymous_bytes
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            wire = stack.enter_context(Wire(broker.port))
            wire.socket.sendall(struct.pack(">i", 100_000_000) + b"half of a request")
        assert_serves(broker.port)
        assert broker.anonymous_bytes - before_bytes < 130 * MIB
    assert_serves(broker.port)


def test_a_slow_writer_delays_no_client(broker: BrokerProcess) -> None:
    frame = frame_of(ApiVersionsRequest(), 0)
    data = len(frame).to_bytes(4, "big") + frame
    with Wire(broker.port) as slow:
        for byte in data[:-1]:
            slow.socket.sendall(bytes([byte]))
            assert_serves(broker.port)
        slow.socket.sendall(data[-1:])
        assert slow.receive_frame()


def fill(port: int, topic: str, size_bytes: int) -> None:
    with Wire(port) as wire:
        create(wire, new_topic(topic))
        large = batch(b"x" * (900 << 10))
        for _ in range(size_bytes // len(large)):
            wire.produce(topic, large)


def small_window(port: int) -> Wire:
    """Open a connection with small kernel buffers, so that the broker must buffer unread responses."""
    wire = Wire(port)
    wire.socket.close()
    wire.socket = socket.socket()
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.socket.settimeout(20)
    wire.socket.connect(("127.0.0.1", port))
    return wire


def test_consumers_that_never_read_cost_bounded_memory(broker: BrokerProcess) -> None:
    fill(broker.port, "t", 64 * MIB)
    assert_serves(broker.port)
    before_bytes = broker.anonymous_bytes
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            wire = stack.enter_context(small_window(broker.port))
            for _ in range(10):
                wire.send(wire.fetch_request("t", 0), 12)  # 55 MiB each, 10 GiB in all
        assert_serves(broker.port)
        assert broker.anonymous_bytes - before_bytes < 50 * MIB
    assert_serves(broker.port)


def test_clients_that_never_read_responses_cost_bounded_memory(broker: BrokerProcess) -> None:
    assert_serves(broker.port)
    before_bytes = broker.anonymous_bytes
    frame = frame_of(ApiVersionsRequest(), 0)
    requests = (len(frame).to_bytes(4, "big") + frame) * 20_000
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            wire = stack.enter_context(small_window(broker.port))
            wire.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    wire.socket.send(requests)
        assert_serves(broker.port)
        assert broker.anonymous_bytes - before_bytes < 50 * MIB
    assert_serves(broker.port)


def test_a_client_that_starts_reading_late_gets_everything(broker: BrokerProcess) -> None:
    fill(broker.port, "t", 8 * MIB)
    with small_window(broker.port) as wire:
        correlation_ids = [wire.send(wire.fetch_request("t", 0), 12) for _ in range(5)]
        assert_serves(broker.port)
        for correlation_id in correlation_ids:
            answer = wire.receive_frame()
            assert int.from_bytes(answer[4:8], "big") == correlation_id
            assert len(answer) > 7 * MIB


def test_clients_that_disconnect_within_a_response_leak_nothing(broker: BrokerProcess) -> None:
    fill(broker.port, "t", 16 * MIB)
    files = len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))
    for _ in range(50):
        wire = small_window(broker.port)
        wire.send(wire.fetch_request("t", 0), 12)
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()
    assert_serves(broker.port)
    deadline_s = time.monotonic() + 10
    while (now := len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))) > files + 3:
        assert time.monotonic() < deadline_s, now
        time.sleep(0.05)
