"""TLS of one connection: the protocol of its socket, and the transport of the protocol above.

asyncio has its own, but a client whose handshake fails gets no alert from it, and does not learn why; and a connection
is known only after its handshake.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, Protocol, cast

from barnabas.base.buffers import Buffer
from barnabas.tls.failures import failure_reason

#: The largest plaintext of a record.
RECORD_BYTES_MAX = 16 << 10

#: OpenSSL gets at most this much plaintext at once, and the socket about as much ciphertext. With twice as much, malloc
#: returned the memory of each piece to the system, and a fetched GiB took 1.0 s of CPU instead of 0.6.
FLUSH_BYTES = 128 << 10


#: OpenSSL gets at most this much ciphertext at once: it answers all messages in it, before it returns.
PIECE_BYTES = 64 << 10

#: How much OpenSSL may answer to a piece. A KeyUpdate, which a client sends after many gigabytes, has 27 bytes.
ANSWER_BYTES_MAX = 1 << 10

#: OpenSSL's reasons, in words for the log.
_REASONS = {
    "HTTP_REQUEST": "the client does not use TLS, but HTTP",
    "NO_SHARED_CIPHER": "the client supports none of the cipher suites",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has sent no certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the certificate of this broker",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client refuses the certificate of this broker",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client refuses the certificate of this broker",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client reports that the certificate of this broker has expired",
    "UNSUPPORTED_PROTOCOL": "the client supports only versions of TLS that are not allowed",
    "WRONG_VERSION_NUMBER": "the client does not use TLS",
}


class TlsPhase(Enum):
    """The phase of a connection with TLS."""

    SILENT = "the client has sent nothing"
    HANDSHAKE = "client and server negotiate"
    OPEN = "the protocol above knows the connection"
    CLOSED = "nothing more is sent"


TRANSITIONS: Mapping[TlsPhase, frozenset[TlsPhase]] = {
    TlsPhase.SILENT: frozenset({TlsPhase.HANDSHAKE, TlsPhase.CLOSED}),
    TlsPhase.HANDSHAKE: frozenset({TlsPhase.OPEN, TlsPhase.CLOSED}),
    TlsPhase.OPEN: frozenset({TlsPhase.CLOSED}),
    TlsPhase.CLOSED: frozenset(),
}


class Handshaking(Protocol):
    """Decides when handshakes go on; see `barnabas.net.handshakes`."""

    @property
    def scratch(self) -> bytearray:
        """Memory for ciphertext that has just arrived."""
        ...

    def begin(self, connection: "TlsConnection") -> None: ...

    def wait(self, connection: "TlsConnection") -> None:
        """The client's next message is awaited."""
        ...

    def go_on(self, connection: "TlsConnection") -> None:
        """Call the connection's `shake_hands` when it is its turn."""
        ...

    def end(self, connection: "TlsConnection", failure: str | None, *, is_refusal: bool = False) -> None:
        """The handshake is complete, or has failed.

        :param is_refusal: Client and broker do not agree; else the connection has ended for another reason.
        """
        ...


class TlsConnection(asyncio.BufferedProtocol):
    """The protocol of the socket. It counts as a connection until the handshake is complete; then `above` does."""

    def __init__(
        self,
        above: asyncio.BufferedProtocol,
        listener: str,
        handshaking: Handshaking,
        context: Callable[[], ssl.SSLContext],
    ) -> None:
        """:param above: Gets `connection_made` with a transport for plaintext when the handshake is complete.
        :param context: Returns the TLS context; called when the client has sent something.
        """
        self._above = above
        self._listener = listener
        self._handshaking = handshaking
        self._context = context
        self._scratch = memoryview(handshaking.scratch)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._is_held = False  #: the handshake may not begin yet
        self._is_paused = False  #: by the protocol above
        self._is_unread = False  #: the client does not read what it is sent
        self._is_known_above = False
        self.phase = TlsPhase.SILENT
        self.client_host = "unknown"
        self.active_ms = 0

    # Callbacks of the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.client_host = (transport.get_extra_info("peername") or ("unknown", 0))[0]
        self._handshaking.begin(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("the client closed the connection")
        if self._is_known_above:
            self._above.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self.phase is TlsPhase.OPEN:
            for first in range(0, nbytes, PIECE_BYTES):
                self._incoming.write(self._scratch[first : min(first + PIECE_BYTES, nbytes)])
                self.decrypt()
            return
        self._incoming.write(self._scratch[:nbytes])
        if self._is_held:
            self._transport.pause_reading()
        elif self.phase is not TlsPhase.CLOSED:
            self._go_on()

    def _go_on(self) -> None:
        if self.phase is TlsPhase.SILENT:
            self._change(TlsPhase.HANDSHAKE)
        self._transport.pause_reading()
        self._handshaking.go_on(self)

    def pause_writing(self) -> None:
        self._is_unread = True
        if self._is_known_above:
            self._transport.pause_reading()  # OpenSSL would go on answering
            self._above.pause_writing()

    def resume_writing(self) -> None:
        self._is_unread = False
        if self._is_known_above:
            if self.phase is TlsPhase.OPEN and not self._is_paused:
                self._transport.resume_reading()
            self._above.resume_writing()

    def hold(self) -> None:
        """Read nothing from a new client, and do not begin the handshake.

        uvloop begins to read after `connection_made`, and a pause within it has no effect.
        """
        self._is_held = True
        asyncio.get_running_loop().call_soon(self._pause_if_held)

    def _pause_if_held(self) -> None:
        if self._is_held:
            self._transport.pause_reading()

    def release(self) -> None:
        """End `hold`: begin the handshake with what has arrived since, or read from the client."""
        self._is_held = False
        if self._incoming.pending:
            self._go_on()
        else:
            self._transport.resume_reading()

    # Handshake

    def shake_hands(self) -> None:
        """Go on with the handshake as far as the received bytes allow."""
        if self.phase is not TlsPhase.HANDSHAKE:
            return
        if self._tls is None:
            self._tls = self._context().wrap_bio(self._incoming, self._outgoing, server_side=True)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self.flush()
            self._transport.resume_reading()
            self._handshaking.wait(self)
        except ssl.SSLError as error:
            self.flush()  # the alert, which tells the client why
            self._end(failure_reason(error, _REASONS, "the client's certificate is refused"), is_refusal=True)
            self._transport.close()
        else:
            self.flush()
            self._open(self._tls)

    @property
    def has_begun(self) -> bool:
        """Whether the broker has answered the client's first message."""
        return self._tls is not None

    def _open(self, tls: ssl.SSLObject) -> None:
        self._change(TlsPhase.OPEN)
        self._handshaking.end(self, None)
        self._transport.resume_reading()
        self._is_known_above = True
        try:
            self._above.connection_made(TlsTransport(self, self._transport, tls))
        except Exception:  # the client must not go on without a name
            self.abort()
            raise
        self.decrypt()

    def _end(self, failure: str, *, is_refusal: bool = False) -> None:
        """Enter CLOSED; a handshake that is not complete has failed because of `failure`."""
        if self.phase is TlsPhase.CLOSED:
            return
        was_open = self.phase is TlsPhase.OPEN
        self._change(TlsPhase.CLOSED)
        if not was_open:
            self._handshaking.end(self, failure, is_refusal=is_refusal)

    def _change(self, phase: TlsPhase) -> None:
        assert phase in TRANSITIONS[self.phase], (self.phase, phase)
        self.phase = phase

    # Data

    def decrypt(self) -> None:
        """Pass on what has arrived."""
        while self.phase is TlsPhase.OPEN and not self._is_paused and self._decrypt_once():
            pass

    def _decrypt_once(self) -> bool:
        """Fill the buffer of the protocol above; return whether there may be more."""
        tls, incoming = self._tls, self._incoming
        assert tls is not None
        buffer = memoryview(self._above.get_buffer(-1))
        filled_bytes, is_over, has_more = 0, False, True
        try:
            while has_more and filled_bytes < len(buffer) and not is_over:
                before_bytes = filled_bytes
                filled_bytes += cast("int", tls.read(len(buffer) - filled_bytes, buffer[filled_bytes:]))
                is_over = filled_bytes == before_bytes
                # Reading nothing costs as much as a record.
                has_more = bool(incoming.pending or tls.pending())
        except ssl.SSLWantReadError:
            has_more = False
        except ssl.SSLError:
            is_over = True
        if self._outgoing.pending > ANSWER_BYTES_MAX:  # the client keeps OpenSSL busy
            self.abort()
            return False
        if filled_bytes:
            self._above.buffer_updated(filled_bytes)
        self.flush()
        if is_over:
            self.shut_down()
        return has_more

    def encrypt(self, buffers: Iterable[Buffer]) -> None:
        """Send plaintext, in records that are as large as possible."""
        if self.phase is not TlsPhase.OPEN:
            return
        rest = bytearray()
        for buffer in buffers:
            view = memoryview(buffer)
            missing_bytes = RECORD_BYTES_MAX - len(rest)
            if view.nbytes < missing_bytes:
                rest += view
                continue
            if rest:
                rest += view[:missing_bytes]
                view = view[missing_bytes:]
                self._write(memoryview(rest))
            whole_bytes = view.nbytes // RECORD_BYTES_MAX * RECORD_BYTES_MAX
            self._write(view[:whole_bytes])
            rest = bytearray(view[whole_bytes:])
        self._write(memoryview(rest))
        self.flush()

    def _write(self, view: memoryview) -> None:
        assert self._tls is not None
        position = 0
        try:
            while position < len(view):
                position += self._tls.write(view[position : position + FLUSH_BYTES])
                if self._outgoing.pending >= FLUSH_BYTES:
                    self.flush()
        except ssl.SSLError:  # a record of the client was damaged
            self.abort()

    def flush(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    def set_paused(self, is_paused: bool) -> None:
        """Stop passing data on, or go on."""
        self._is_paused = is_paused
        if is_paused:
            self._transport.pause_reading()
        else:
            if not self._is_unread:
                self._transport.resume_reading()
            asyncio.get_running_loop().call_soon(self.decrypt)

    # The end

    def shut_down(self) -> None:
        """Tell the client that nothing follows, and close when all is sent."""
        if self.phase is TlsPhase.OPEN:
            assert self._tls is not None
            with suppress(ssl.SSLError):  # the client's own end is not waited for
                self._tls.unwrap()
            self.flush()
        self._end("the connection was closed")
        self._transport.close()

    def close(self, why: str) -> None:
        self._end(why)
        self._transport.close()

    def abort(self) -> None:
        self._end("the connection was aborted")
        self._transport.abort()

    # As a connection that is not open yet

    @property
    def listener(self) -> str:
        return self._listener

    @property
    def is_busy(self) -> bool:
        return False

    def has_read(self) -> bool:
        return False

    def send(self) -> None:
        """Do nothing: responses begin after the handshake."""


class TlsTransport(asyncio.Transport):
    """The transport of the protocol above: plaintext in and out."""

    def __init__(self, connection: TlsConnection, below: asyncio.Transport, tls: ssl.SSLObject) -> None:
        super().__init__()
        self._connection = connection
        self._below = below
        self._tls = tls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else self._below.get_extra_info(name, default)

    def write(self, data: Buffer) -> None:
        self._connection.encrypt((data,))

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        self._connection.encrypt(list_of_data)

    def get_write_buffer_size(self) -> int:
        return self._below.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._connection.set_paused(True)

    def resume_reading(self) -> None:
        self._connection.set_paused(False)

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def close(self) -> None:
        self._connection.shut_down()

    def abort(self) -> None:
        self._connection.abort()
