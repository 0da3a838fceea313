import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.base.buffers import Buffer
from barnabas.net.tls_transport import RECORD_BYTES_MAX, TlsConnection, TlsPhase
from barnabas.tls.contexts import client_context, server_context
from barnabas.tls.settings import KeyStore, TlsSettings, TrustStore
from support.certificates import Authority
from support.key_updates import key_updates
from support.loop import on_loop

AUTHORITY = Authority()
BROKER = AUTHORITY.issue()
SETTINGS = TlsSettings(KeyStore("PEM", key=BROKER.key_pem(), certificate_chain=BROKER.certificate_pem))
SERVER = server_context(SETTINGS)
CLIENT = client_context(TlsSettings(trust=TrustStore("PEM", certificates=AUTHORITY.pem)))


class Above(asyncio.BufferedProtocol):
    """Collects what the client sent."""

    def __init__(self, buffer_bytes: int) -> None:
        self.buffer = bytearray(buffer_bytes)
        self.received = b""
        self.calls: list[str] = []
        self.transport: asyncio.Transport | None = None
        self.pauses_after: int | None = None  #: bytes
        self.fails = False
        self.response = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self.fails:
            raise RuntimeError("no name")
        self.transport = cast("asyncio.Transport", transport)
        self.calls.append("made")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]
        if self.response:
            assert self.transport is not None
            self.transport.write(self.response)
        if self.pauses_after is not None and len(self.received) >= self.pauses_after:
            assert self.transport is not None
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")


class Below(asyncio.Transport):
    """The socket: collects the ciphertext."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.calls: list[str] = []

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 1234) if name == "peername" else default

    def write(self, data: Buffer) -> None:
        assert "close" not in self.calls
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return bool({"close", "abort"} & {*self.calls})

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def get_write_buffer_size(self) -> int:
        return 7


class AtOnce:
    """Lets handshakes go on at once."""

    def __init__(self) -> None:
        self.scratch = bytearray(64 << 10)
        self.ended: list[str | None] = []
        self.refusals_count = 0
        self.is_busy = False  #: handshakes wait for their turn

    def begin(self, connection: TlsConnection) -> None:
        pass

    def go_on(self, connection: TlsConnection) -> None:
        if not self.is_busy:
            connection.shake_hands()

    def wait(self, connection: TlsConnection) -> None:
        pass

    def end(self, connection: TlsConnection, failure: str | None, *, is_refusal: bool = False) -> None:
        self.ended.append(failure)
        self.refusals_count += is_refusal


class Link:
    """A connection between a client and `TlsConnection`, in memory."""

    def __init__(
        self, *, buffer_bytes: int = 100_000, piece_bytes: int = 1 << 20, context: ssl.SSLContext = SERVER
    ) -> None:
        self.above, self.below, self.handshaking = Above(buffer_bytes), Below(), AtOnce()
        self.connection = TlsConnection(self.above, "SSL", self.handshaking, lambda: context)
        self.connection.connection_made(self.below)
        self._piece_bytes = piece_bytes
        self._to_client, self._to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = CLIENT.wrap_bio(self._to_client, self._to_server, server_hostname="localhost")

    def shake_hands(self) -> "Link":
        for _ in range(4):
            with suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.carry()
        return self

    def client_begins(self) -> None:
        with suppress(ssl.SSLWantReadError):
            self.client.do_handshake()
        self.feed(self._to_server.read())

    def carry(self) -> None:
        """Carry ciphertext in both directions."""
        while self._to_server.pending or self.below.written:
            self.feed(self._to_server.read())
            for data in self.below.written:
                self._to_client.write(data)
            self.below.written.clear()

    def feed(self, data: bytes) -> None:
        for start in range(0, len(data), self._piece_bytes):
            piece = data[start : start + self._piece_bytes]
            self.connection.get_buffer(-1)[: len(piece)] = piece
            self.connection.buffer_updated(len(piece))

    def receive(self) -> bytes:
        """Return all plaintext that the client has got."""
        self.carry()
        received = b""
        with suppress(ssl.SSLWantReadError):
            while data := self.client.read(1 << 20):
                received += data
        return received

    def write(self, buffers: Iterable[Buffer]) -> None:
        assert self.above.transport is not None
        self.above.transport.writelines(buffers)

    @property
    def transport(self) -> asyncio.Transport:
        assert self.above.transport is not None
        return self.above.transport


@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_the_protocol_above_knows_a_connection_after_the_handshake(piece_bytes: int) -> None:
    link = Link(piece_bytes=piece_bytes)
    assert link.connection.phase is TlsPhase.SILENT
    assert (link.above.calls, link.connection.client_host) == ([], "10.0.0.1")
    link.shake_hands()
    assert link.connection.phase is TlsPhase.OPEN
    assert (link.above.calls, link.handshaking.ended) == (["made"], [None])
    assert link.transport.get_extra_info("peername") == ("10.0.0.1", 1234)
    assert link.transport.get_extra_info("ssl_object").version() == "TLSv1.3"
    assert link.transport.get_write_buffer_size() == 7


@pytest.mark.parametrize("piece_bytes", [3, 1 << 16])
@pytest.mark.parametrize("buffer_bytes", [10, 16_384, 100_000])
def test_plaintext_arrives_whole_in_buffers_and_pieces_of_any_size(
    buffer_bytes: int, piece_bytes: int
) -> None:
    link = Link(buffer_bytes=buffer_bytes, piece_bytes=piece_bytes).shake_hands()
    data = bytes(range(256)) * 200
    for start in range(0, len(data), 10_000):
        link.client.write(data[start : start + 10_000])
    link.carry()
    assert link.above.received == data


def test_a_record_that_has_arrived_whole_is_read_once() -> None:
    class Counted(ssl.SSLObject):
        reads_count = 0

        def read(self, *arguments: Any) -> Any:
            Counted.reads_count += 1
            return super().read(*arguments)

    server = server_context(SETTINGS)
    server.sslobject_class = Counted
    link = Link(context=server).shake_hands()
    before = Counted.reads_count
    for _ in range(10):
        link.client.write(b"request")
        link.carry()
    assert link.above.received == b"request" * 10
    assert Counted.reads_count - before == 10


def test_what_the_client_sends_with_the_end_of_its_handshake_is_not_lost() -> None:
    link = Link()
    for _ in range(2):
        with suppress(ssl.SSLWantReadError):
            link.client.do_handshake()
        if link.handshaking.ended or (link.client.version() == "TLSv1.3" and link.client.cipher()):
            break
        link.carry()
    link.client.write(b"early")
    link.carry()
    assert link.above.received == b"early"


@pytest.mark.parametrize(
    "sizes", [[0], [1], [10, 20], [16_384], [5, 16_384, 5], [40_000, 3, 70_000], [4, 1 << 20]]
)
def test_plaintext_is_sent_in_full_records(sizes: list[int]) -> None:
    link = Link().shake_hands()
    buffers = [bytes([index]) * size for index, size in enumerate(sizes)]
    link.write([memoryview(buffer) for buffer in buffers])
    ciphertext = b"".join(link.below.written)
    records, position = 0, 0
    while position < len(ciphertext):
        position += 5 + int.from_bytes(ciphertext[position + 3 : position + 5], "big")
        records += 1
    assert records == -(-sum(sizes) // RECORD_BYTES_MAX)
    assert link.receive() == b"".join(buffers)


def test_a_single_buffer_is_sent() -> None:
    link = Link().shake_hands()
    link.transport.write(b"hello")
    assert link.receive() == b"hello"


@on_loop
async def test_a_paused_protocol_gets_nothing_until_it_resumes() -> None:
    link = Link(buffer_bytes=1_000).shake_hands()
    link.below.calls.clear()
    link.above.pauses_after = 1_500
    link.client.write(b"x" * 5_000)
    link.carry()
    assert len(link.above.received) == 2_000
    assert link.below.calls == ["pause"]
    link.above.pauses_after = None
    link.transport.resume_reading()
    assert link.below.calls == ["pause", "resume"]
    await asyncio.sleep(0)
    assert link.above.received == b"x" * 5_000


def test_the_client_learns_of_an_orderly_end() -> None:
    link = Link().shake_hands()
    link.transport.write(b"last")
    link.transport.close()
    assert link.receive() == b"last"
    assert link.below.calls[-1] == "close"
    assert link.client.read(1) == b""
    link.connection.connection_lost(None)
    assert link.above.calls == ["made", "lost"]
    link.transport.write(b"too late")
    assert link.below.written == []


def test_the_end_of_the_client_closes_the_connection_after_its_last_data() -> None:
    link = Link().shake_hands()
    link.client.write(b"last")
    with suppress(ssl.SSLWantReadError):
        link.client.unwrap()
    link.carry()
    assert (link.above.received, link.below.calls[-1]) == (b"last", "close")


def test_a_damaged_record_closes_the_connection() -> None:
    link = Link().shake_hands()
    link.client.write(b"data")
    damaged = bytearray(link._to_server.read())
    damaged[-1] ^= 1
    link.feed(damaged)
    assert (link.above.received, link.below.calls[-1]) == (b"", "close")


@pytest.fixture
def key_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the client writes its keys."""
    monkeypatch.setattr(CLIENT, "keylog_filename", str(tmp_path / "keys"))
    return tmp_path / "keys"


def test_a_client_that_asks_for_new_keys_again_and_again_is_disconnected(key_log: Path) -> None:
    link = Link(piece_bytes=64 << 10).shake_hands()
    link.below.written.clear()
    link.feed(key_updates(key_log, link.client, 1_000))
    assert link.below.calls[-1] == "abort"
    assert link.below.written == []


def test_a_client_may_ask_for_new_keys(key_log: Path) -> None:
    link = Link().shake_hands()
    link.below.written.clear()
    link.feed(key_updates(key_log, link.client, 10))
    assert "abort" not in link.below.calls
    assert 0 < len(b"".join(link.below.written)) <= 10 * 27


def test_nothing_is_read_from_a_client_that_does_not_read() -> None:
    link = Link().shake_hands()
    link.below.calls.clear()
    link.connection.pause_writing()
    link.connection.resume_writing()
    assert link.below.calls == ["pause", "resume"]


def test_nothing_is_read_again_while_a_connection_that_was_closed_sends_its_last_data() -> None:
    link = Link().shake_hands()
    link.connection.pause_writing()
    link.transport.close()
    link.below.calls.clear()
    link.connection.resume_writing()
    assert link.below.calls == []


@on_loop
async def test_reading_goes_on_when_the_client_reads_and_the_protocol_above_wants_more() -> None:
    link = Link().shake_hands()
    link.below.calls.clear()
    link.transport.pause_reading()
    link.connection.pause_writing()
    link.connection.resume_writing()
    assert "resume" not in link.below.calls
    link.connection.pause_writing()
    link.transport.resume_reading()
    assert "resume" not in link.below.calls
    link.connection.resume_writing()
    assert link.below.calls[-1] == "resume"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0\0\0\x10hello hello hello", "the client does not use TLS"),
        (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "the client does not use TLS, but HTTP"),
    ],
)
def test_a_client_without_tls_is_disconnected(data: bytes, why: str) -> None:
    link = Link()
    link.feed(data)
    assert (link.handshaking.ended, link.below.calls[-1], link.above.calls) == ([why], "close", [])
    assert link.handshaking.refusals_count == 1
    link.connection.connection_lost(None)
    assert link.handshaking.ended == [why]
    link.feed(data)  # what still arrives is ignored


def test_an_aborted_connection_sends_nothing_more() -> None:
    link = Link().shake_hands()
    link.transport.abort()
    link.transport.write(b"late")
    assert (link.below.written, link.below.calls[-1]) == ([], "abort")


def test_the_protocol_above_hears_of_full_buffers_when_it_knows_the_connection() -> None:
    link = Link()
    link.connection.pause_writing()
    link.connection.resume_writing()
    assert link.above.calls == []
    link.shake_hands()
    link.connection.pause_writing()
    link.connection.resume_writing()
    assert link.above.calls == ["made", "pause", "resume"]


def test_nothing_is_read_while_a_handshake_waits_for_its_turn() -> None:
    link = Link()
    link.handshaking.is_busy = True
    link.client_begins()
    assert link.below.calls == ["pause"]
    link.connection.shake_hands()
    assert link.below.calls == ["pause", "resume"]


def test_a_client_that_cannot_be_named_is_disconnected() -> None:
    link = Link()
    link.above.fails = True
    with pytest.raises(RuntimeError, match="no name"):
        link.shake_hands()
    assert link.connection.phase is TlsPhase.CLOSED
    assert link.below.calls[-1] == "abort"
    link.feed(b"more")
    assert link.above.received == b""


def test_a_response_after_a_damaged_record_ends_the_connection() -> None:
    link = Link().shake_hands()
    link.above.response = b"x" * 100_000
    link.client.write(b"request")
    link.client.write(b"damaged")
    records = bytearray(link._to_server.read())
    records[-1] ^= 1
    link.feed(records)
    assert link.above.received == b"request"
    assert link.connection.phase is TlsPhase.CLOSED
