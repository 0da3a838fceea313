import asyncio
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from barnabas.net import connection as module
from barnabas.net.connection import ServerConnection
from barnabas.net.connection_state import QUEUED_BYTES_MAX, QUEUED_COUNT_MAX
from barnabas.net.connections import ConnectionLimits
from barnabas.net.response_buffer import CHUNK_BYTES, JOINED_CHUNK_BYTES_MAX, TURN_BYTES_MAX
from support.connections import FRAME_BYTES_MAX, PART_BYTES, Client, Transport
from support.loop import in_virtual_time, on_loop, turns
from support.mapped import mapped_file


@pytest.fixture(autouse=True)
def log_lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, object]]]:
    """Collect the module's log."""
    lines: list[tuple[str, dict[str, object]]] = []

    class Log:
        def info(self, event: str, **fields: object) -> None:
            lines.append((event, fields))

    monkeypatch.setattr(module, "_log", Log())
    return lines


# Order


@on_loop
async def test_requests_that_need_no_wait_are_answered_in_the_same_turn() -> None:
    client = Client()
    client.send("now:a", "once:b", "now:c")
    assert client.received == ["a", "b", "c"]
    assert client.transport.writes == ["write"]


@on_loop
async def test_requests_with_a_fast_path_are_answered_in_order() -> None:
    client = Client()
    client.send("once:a", "once:b", "now:c", "once:d", "wait:e", "once:f", "now:g")
    assert client.received == ["a", "b", "c", "d"]
    await client.release("e")
    assert client.received == list("abcdefg")


@on_loop
async def test_requests_beyond_a_turn_are_answered_in_later_turns() -> None:
    client = Client()
    client.dispatcher.ms_per_request = 2
    client.send(*(f"once:{n}" for n in range(10)))
    assert client.dispatcher.started == ["0", "1", "2"]
    await turns(1)
    assert client.dispatcher.started == [str(n) for n in range(6)]
    await turns(6)
    assert client.received == [str(n) for n in range(10)]


@on_loop
async def test_a_client_with_many_requests_is_not_read_until_they_are_answered() -> None:
    client = Client()
    client.dispatcher.ms_per_request = 5
    client.send(*(f"once:{n}" for n in range(QUEUED_COUNT_MAX + 1)))
    assert not client.transport.reading
    await turns(2 * QUEUED_COUNT_MAX)
    assert client.transport.reading
    assert len(client.received) == QUEUED_COUNT_MAX + 1


@on_loop
async def test_responses_are_in_request_order_although_the_first_one_waits() -> None:
    client = Client()
    client.send("wait:a", "now:b", "once:c")
    client.send("now:d")
    assert client.received == []
    assert client.dispatcher.started == ["a"]
    await client.release("a")
    assert client.received == ["a", "b", "c", "d"]


@on_loop
async def test_several_waiting_requests_are_answered_in_order() -> None:
    client = Client()
    client.send("now:0", "wait:a", "now:b", "wait:c", "now:d")
    assert client.received == ["0"]
    await client.release("a")
    assert client.received == ["0", "a", "b"]
    await client.release("c")
    assert client.received == ["0", "a", "b", "c", "d"]


@on_loop
async def test_a_request_that_waits_several_times_is_answered_once() -> None:
    client = Client()
    client.send("twice:a", "now:b")
    await turns(10)
    assert client.received == ["a", "b"]


@on_loop
async def test_queued_requests_survive_the_reuse_of_their_buffer() -> None:
    client = Client()
    client.send("wait:a", "now:kept")
    client.send("now:" + "x" * 1000)
    await client.release("a")
    assert client.received == ["a", "kept", "x" * 1000]


@on_loop
async def test_a_request_without_a_response_is_skipped() -> None:
    client = Client()
    client.send("none:a", "now:b", "none:c")
    assert client.received == ["b"]
    assert not client.transport.closed


@on_loop
async def test_a_fragmented_request_is_answered_when_it_is_complete() -> None:
    client = Client()
    data = struct.pack(">i", 5) + b"now:a" + struct.pack(">i", 6) + b"once:b"
    for at in range(len(data)):
        client.send_bytes(data[at : at + 1])
    assert client.received == ["a", "b"]


# Back-pressure


@on_loop
async def test_reading_pauses_when_too_many_requests_are_queued_and_resumes() -> None:
    client = Client()
    client.send("wait:first", *(f"now:{n}" for n in range(QUEUED_COUNT_MAX - 1)))
    assert client.transport.reading
    client.send("now:last")
    assert not client.transport.reading
    await client.release("first")
    assert client.transport.reading
    assert client.received == ["first", *map(str, range(QUEUED_COUNT_MAX - 1)), "last"]


@on_loop
async def test_reading_pauses_when_too_many_bytes_are_queued() -> None:
    client = Client()
    client.send("wait:first", "now:" + "x" * QUEUED_BYTES_MAX)
    assert not client.transport.reading
    await client.release("first")
    assert client.transport.reading
    assert client.connection.statistics()["queued_bytes"] == 0


@on_loop
async def test_reading_stays_paused_while_a_queued_request_waits() -> None:
    client = Client()
    client.send("wait:a", "wait:b", *(f"now:{n}" for n in range(QUEUED_COUNT_MAX)))
    assert not client.transport.reading
    await client.release("a")
    assert not client.transport.reading
    await client.release("b")
    assert client.transport.reading


@on_loop
async def test_a_client_that_does_not_read_gets_no_responses_until_it_does() -> None:
    client = Client()
    client.connection.pause_writing()
    client.send("now:a", "once:b")
    assert client.received == []
    assert client.dispatcher.started == []
    client.connection.resume_writing()
    assert client.received == ["a", "b"]


@on_loop
async def test_a_client_that_only_writes_is_eventually_not_read() -> None:
    client = Client()
    client.connection.pause_writing()
    client.send(*(f"now:{n}" for n in range(QUEUED_COUNT_MAX)))
    assert not client.transport.reading
    client.connection.resume_writing()
    assert client.transport.reading
    assert len(client.received) == QUEUED_COUNT_MAX


@on_loop
async def test_responses_are_written_when_the_client_reads_again() -> None:
    client = Client()
    client.send("wait:a", "now:b")
    client.connection.pause_writing()
    await client.release("a")
    assert (client.received, client.dispatcher.started) == ([], ["a"])
    client.connection.resume_writing()
    assert client.received == ["a", "b"]


@on_loop
async def test_many_large_responses_are_not_held_back_together() -> None:
    client = Client(reads_slowly=True)
    client.send(*[f"large:{TURN_BYTES_MAX}"] * 20)
    assert len(client.dispatcher.started) == 1
    for expected in range(2, 21):
        client.connection.resume_writing()
        assert len(client.dispatcher.started) == expected


@on_loop
async def test_a_very_large_response_is_written_as_fast_as_its_client_reads() -> None:
    client = Client(reads_slowly=True)
    client.send("parts:5", "now:b")
    for expected in (2, 4):
        assert len(client.transport.out) == expected * PART_BYTES
        client.connection.resume_writing()
    assert len(client.transport.out) == 5 * PART_BYTES + len(b"b;")
    assert client.transport.out.endswith(b"xb;")


@on_loop
async def test_a_very_large_response_is_completed_before_its_connection_closes() -> None:
    client = Client(reads_slowly=True)
    client.send("parts:5")
    client.connection.close("the broker stops")
    for expected in (2, 4):
        assert len(client.transport.out) == expected * PART_BYTES
        assert (client.transport.closed, client.transport.reading) == (False, False)
        client.connection.resume_writing()
    assert len(client.transport.out) == 5 * PART_BYTES
    await turns(1)
    assert client.transport.closed


@on_loop
async def test_with_tls_a_large_buffer_is_encrypted_as_fast_as_its_client_reads() -> None:
    client = Client(reads_slowly=True, uses_tls=True)
    client.transport.after_write = client.connection.pause_writing
    client.send(f"large:{3 * CHUNK_BYTES}")
    client.connection.close("the broker stops")
    for expected in (1, 2, 3):
        assert len(client.transport.out) == expected * CHUNK_BYTES
        client.connection.resume_writing()
    assert client.transport.out.endswith(b"x;")
    await turns(1)
    assert client.transport.closed


@on_loop
async def test_a_response_whose_records_are_truncated_is_given_up(
    tmp_path: Path, log_lines: list[tuple[str, dict[str, object]]]
) -> None:
    client = Client(reads_slowly=True, uses_tls=True)
    client.transport.after_write = client.connection.pause_writing
    client.dispatcher.records = mapped_file(tmp_path / "00.log", 3 * CHUNK_BYTES)
    client.send("records:")
    os.truncate(tmp_path / "00.log", CHUNK_BYTES)
    client.connection.resume_writing()
    assert len(client.transport.out) == CHUNK_BYTES
    assert client.transport.aborted
    why = "the log was truncated below the end of a response"
    assert log_lines == [("aborting a connection", {"why": why, "client": "10.0.0.1:4321"})]


@pytest.mark.parametrize(
    ("size_bytes", "how"), [(JOINED_CHUNK_BYTES_MAX - 1, "write"), (JOINED_CHUNK_BYTES_MAX, "writelines")]
)
def test_small_responses_are_joined_and_large_ones_not_copied(size_bytes: int, how: str) -> None:
    @on_loop
    async def scenario() -> None:
        client = Client()
        client.send(f"large:{size_bytes}")
        assert client.transport.writes == [how]
        assert len(client.transport.out) == size_bytes + 1

    scenario()


# Ending


@pytest.mark.parametrize("size", [-1, FRAME_BYTES_MAX + 1, 2**31 - 1])
def test_an_invalid_frame_closes_the_connection_after_earlier_responses(
    size: int, log_lines: list[tuple[str, dict[str, object]]]
) -> None:
    @on_loop
    async def scenario() -> None:
        client = Client()
        client.send_bytes(struct.pack(">i", 5) + b"now:a" + struct.pack(">i", size))
        assert client.received == ["a"]
        assert client.transport.closed
        client.connection.connection_lost(None)

    scenario()
    [(event, fields)] = log_lines
    assert "closing" in event
    assert str(size) in str(fields["why"])
    assert fields["client"] == "10.0.0.1:4321"


@pytest.mark.parametrize(("request_", "received"), [("bad:sorry;", ["a", "sorry"]), ("bad:", ["a"])])
def test_a_rejected_request_closes_the_connection_after_its_response(
    request_: str, received: list[str]
) -> None:
    @on_loop
    async def scenario() -> None:
        client = Client()
        client.send("now:a", request_, "now:b")
        assert client.received == received
        assert client.transport.closed
        assert client.dispatcher.started == ["a"]
        client.send("now:c")
        assert client.received == received

    scenario()


@on_loop
async def test_a_rejected_request_in_the_queue_ends_the_queue() -> None:
    client = Client()
    client.send("wait:a", "bad:no;", "now:b")
    await client.release("a")
    assert client.received == ["a", "no"]
    assert client.transport.closed


@on_loop
async def test_a_failed_request_without_a_possible_response_closes_the_connection() -> None:
    client = Client()
    client.send("now:a", "close:b", "now:c")
    assert client.received == ["a"]
    assert client.transport.closed
    assert client.dispatcher.started == ["a", "b"]
    for end in (ZeroDivisionError(), asyncio.CancelledError()):  # cannot be encoded; cancelled from inside
        client = Client()
        client.send("wait:a")
        client.dispatcher.waiting["a"].set_exception(end)
        await turns(3)
        assert client.transport.closed


@on_loop
async def test_a_disconnect_cancels_waiting_and_queued_requests() -> None:
    client = Client()
    client.send("wait:a", "now:b")
    await turns(2)
    client.connection.connection_lost(ConnectionResetError())
    await turns(3)
    assert client.dispatcher.cancelled == ["a"]
    assert client.dispatcher.started == ["a"]
    assert client.received == []
    assert len(client.connections) == 0


@on_loop
async def test_a_response_after_the_end_is_dropped() -> None:
    client = Client()
    client.send("wait:a", "now:b")
    client.connection.close("enough")
    await client.release("a")
    assert client.received == []
    client.connection.connection_lost(None)


@on_loop
async def test_closing_is_idempotent(log_lines: list[tuple[str, dict[str, object]]]) -> None:
    client = Client()
    client.connection.close("first")
    client.connection.close("second")
    assert [fields["why"] for _, fields in log_lines] == ["first"]


@on_loop
async def test_an_aborted_connection_writes_nothing() -> None:
    client = Client()
    client.connection.abort()
    client.send("now:a")
    assert client.transport.aborted
    assert client.received == []


@on_loop
async def test_nothing_is_written_to_a_closing_transport() -> None:
    client = Client()
    client.transport.closed = True
    client.send("now:a")
    assert client.received == []


# Owner


@on_loop
async def test_a_connection_beyond_the_limit_is_closed_without_being_handled() -> None:
    client = Client(limits=ConnectionLimits(0))
    assert client.transport.closed
    client.send("now:a")
    assert client.dispatcher.started == []
    client.connection.connection_lost(None)
    assert len(client.connections) == 0


@on_loop
async def test_an_idle_connection_is_closed_and_one_with_a_pending_request_is_not() -> None:
    idle, busy = Client(), Client()
    busy.send("wait:a")
    await turns(2)
    for client in (idle, busy):
        client.clock.advance(1001)
        client.connections.close_idle()
    assert (idle.transport.closed, busy.transport.closed) == (True, False)
    await busy.release("a")
    busy.connections.close_idle()
    assert not busy.transport.closed
    busy.clock.advance(1001)
    busy.connections.close_idle()
    assert busy.transport.closed


@pytest.mark.parametrize("first", ["throttle:a", "wait:a"])
@in_virtual_time
async def test_a_paused_connection_is_eventually_idle_because_a_disconnect_is_not_noticed(
    first: str,
) -> None:
    client = Client()
    client.send(first, *(f"now:{n}" for n in range(QUEUED_COUNT_MAX)))
    client.clock.advance(1000)
    client.connections.close_idle()
    assert not client.transport.closed
    client.clock.advance(1)
    client.connections.close_idle()
    assert client.transport.closed
    client.connection.connection_lost(None)
    await turns(3)


@on_loop
async def test_received_bytes_keep_a_connection_alive() -> None:
    client = Client()
    client.clock.advance(900)
    client.send_bytes(b"\0")
    client.clock.advance(900)
    client.connections.close_idle()
    assert not client.transport.closed


@on_loop
async def test_a_client_that_reads_slowly_is_not_idle_until_it_reads_no_more() -> None:
    client = Client(reads_slowly=True)
    client.send("parts:6")
    for unread_bytes, is_closed in ((76, False), (75, False), (75, True)):
        client.clock.advance(1001)
        client.transport.buffered_bytes = unread_bytes
        client.connections.close_idle()
        assert client.connection.statistics()["phase"] == ("CLOSING" if is_closed else "OPEN")


@on_loop
async def test_a_client_that_takes_the_next_part_of_a_response_is_not_idle() -> None:
    client = Client(reads_slowly=True)
    client.send("parts:6")
    client.clock.advance(1001)
    client.connection.resume_writing()
    client.connections.close_idle()
    assert client.connection.statistics()["phase"] == "OPEN"


@on_loop
async def test_statistics_have_the_client_and_pending_requests() -> None:
    client = Client()
    client.send("once:a", "wait:b", "now:c")
    assert client.connection.statistics() == {
        "client": "10.0.0.1:4321",
        "software": "unknown unknown",
        "requests_count": 0,
        "phase": "RESPONSE_PENDING",
        "queued_count": 1,
        "queued_bytes": 5,
        "is_reading": True,
        "write_buffer_bytes": 77,
    }
    statistics = client.dispatcher.statistics
    assert (statistics.in_bytes, statistics.out_bytes) == (29, 2)
    await client.release("b")


@on_loop
async def test_a_peer_without_an_address_is_served() -> None:
    client = Client()
    client.transport = Transport()
    client.transport._extra.clear()  # type: ignore[attr-defined]
    duck: Any = client.dispatcher
    client.connection = ServerConnection(duck, "PLAINTEXT", client.connections)
    client.connection.connection_made(client.transport)
    client.send("now:a")
    assert client.received == ["a"]
    assert client.connection.info.client_host == "unknown"
