"""The asyncio protocol of one client connection.

A request that does not wait is parsed, handled and answered within the callback that received it, without a task or a
queue. `ConnectionState` decides what may happen next; here it is connected to the socket, the dispatcher, the login and
the timers.
"""

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, cast

from barnabas.api.context import ConnectionInfo, RequestContext
from barnabas.api.dispatch import Dispatcher, Parts, RequestRejectedError
from barnabas.base.buffers import Buffer
from barnabas.net.connection_state import ConnectionPhase, ConnectionState
from barnabas.net.connections import Connections
from barnabas.net.response_buffer import TURN_BYTES_MAX, RecordsTruncated, ResponseBuffer
from barnabas.policy import AuthenticationContext
from barnabas.policy.security_calls import NoPrincipal
from barnabas.security.sasl.authenticator import Authenticator, SaslAuthenticationError, SaslState
from barnabas.security.sasl.mechanism import LoginRefused
from barnabas.security.sasl.server import SaslServer
from barnabas.security.tls_server import ANONYMOUS, ClientRefused, TlsServer
from barnabas.telemetry.logs import get_logger
from barnabas.wire.framing import FrameReader, InvalidFrameError

#: Value of SO_LINGER: closing resets the connection instead of ending it in order.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)

_NS_PER_MS = 1_000_000

_log = get_logger("barnabas.net")


class ServerConnection(asyncio.BufferedProtocol):
    def __init__(
        self,
        dispatcher: Dispatcher,
        listener: str,
        connections: Connections,
        sasl: SaslServer | None = None,
        tls: TlsServer | None = None,
    ) -> None:
        """:param sasl: Authenticates clients; None for a listener without SASL.
        :param tls: Names clients by their certificates; None for a listener without TLS, and for one with SASL, where
            the login names the client.
        """
        self._dispatcher = dispatcher
        self.listener = listener
        self._connections = connections
        self._statistics = dispatcher.statistics
        self._turns = dispatcher.broker.turns
        self._sasl = sasl
        self._tls = tls
        self._login: Authenticator | None = None  #: None once no more frames have to be checked
        self._unnamed: AuthenticationContext | None = None  #: what the principal builder must be asked first
        self._frames = FrameReader(connections.scratch, connections.frame_bytes_max)
        self._state = ConnectionState()
        self._is_reading = True  #: as the transport knows it
        self._is_drain_scheduled = False  #: queued requests will be handled in a later turn
        self._responses = ResponseBuffer()
        self._pending: asyncio.Future[Any] | None = None  #: the response, or the principal builder's answer
        self._changes_cluster = False  #: the request that waits goes on if the client leaves
        self._timer: asyncio.TimerHandle | None = None  #: ends THROTTLED or REFUSED
        self._has_responded = False
        self._unread_bytes = 0  #: in the transport's buffer when it was full
        self.active_ms = 0  #: when bytes were last received or sent, on the monotonic clock

    # Transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's class does not inherit from it
        host, port = (transport.get_extra_info("peername") or ("unknown", 0))[:2]
        self.info = ConnectionInfo(listener=self.listener, client_host=host, client_port=port)
        if self._sasl is not None:
            self.info.authenticator = self._login = self._sasl.authenticator(
                host, has_principal_builder=self._has_principal_builder
            )
            self._frames.frame_bytes_max = self._sasl.receive_bytes_max
        if self._has_principal_builder:
            self._describe_security()
        self.active_ms = self._connections.now_ms()
        self._connections.size_buffers(self._transport.get_extra_info("socket"))
        uses_tls = self._transport.get_extra_info("ssl_object") is not None
        self._responses.splits_buffers = uses_tls
        close_reason = self._connections.add(self) or self._identify()
        if close_reason is not None:
            self.close(close_reason)
        elif not uses_tls:  # with TLS its handshake has waited
            self._wait_if_too_many(host)

    def _wait_if_too_many(self, host: str) -> None:
        """Close or delay a connection if clients connect too often (KIP-612)."""
        delay_ms, is_refused = self._connections.admit(self.listener, self._dispatcher.count_connection(host))
        if is_refused:
            self._mute(ConnectionPhase.REFUSED, delay_ms, self.abort)
        elif delay_ms:
            self._mute(ConnectionPhase.THROTTLED, delay_ms, self._end_throttle)

    def _mute(self, phase: ConnectionPhase, delay_ms: int, then: Callable[[], None]) -> None:
        """Do not read a new connection for a while.

        uvloop begins to read after `connection_made`, and a pause within it has no effect.
        """
        self._state.change(phase)
        loop = asyncio.get_running_loop()
        loop.call_soon(self._update_reading)
        self._timer = loop.call_later(delay_ms / 1000, then)

    def _describe_security(self) -> None:
        """Set what a principal builder needs."""
        tls = self._transport.get_extra_info("ssl_object")
        sasl = "" if self._sasl is None else "SASL_"
        self.info.security_protocol = f"{sasl}{'PLAINTEXT' if tls is None else 'SSL'}"
        if tls is not None:
            self.info.certificate = tls.getpeercert(True)

    def _identify(self) -> str | None:
        """Name a client that does not log in; return why it is refused, or None."""
        if self._sasl is not None:
            return None
        user = ANONYMOUS
        if self._tls is not None:
            try:
                user = self._tls.user_of(self._transport.get_extra_info("ssl_object"), self.info.client_host)
            except ClientRefused as error:
                return str(error)
        self.info.is_identified = user != ANONYMOUS
        if self._has_principal_builder:
            self._unnamed = self.info.authentication(user)
        else:
            self._set_principal(f"User:{user}")
        return None

    @property
    def _has_principal_builder(self) -> bool:
        return self._dispatcher.broker.policies.principal_builder(self.listener) is not None

    def connection_lost(self, error: Exception | None) -> None:
        self._change(ConnectionPhase.CLOSED)
        self._responses.clear()
        self._cancel_timer()
        if self._pending is not None and self._changes_cluster and not self._connections.are_closing:
            # A part of the change may be made already, and the audit records it at the end. Until then the connection
            # counts, so that its limits hold.
            self._pending.add_done_callback(lambda _: self._connections.remove(self))
            return
        self._cancel_pending()
        self._connections.remove(self)

    def _cancel_pending(self) -> None:
        if self._pending is not None:
            self._pending.cancel()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the requests that are complete now."""
        self.active_ms = self._turns.begin() // _NS_PER_MS
        self._statistics.in_bytes += nbytes
        self._frames.received(nbytes)
        try:
            while (frame := self._frames.next_frame()) is not None:
                self._receive(frame)
        except InvalidFrameError as error:
            self.close(str(error))
        if self._responses.turn_bytes:
            self._connections.send_soon(self)

    def pause_writing(self) -> None:
        self._state.pause_writing()

    def resume_writing(self) -> None:
        self.active_ms = self._connections.now_ms()
        self._state.resume_writing()
        self._write()
        self._drain_queue()
        if self._state.phase is ConnectionPhase.CLOSING:
            # Later: asyncio's transport ends twice if it is closed within this callback.
            asyncio.get_running_loop().call_soon(self._close_if_written)

    # Requests

    def _receive(self, frame: memoryview) -> None:
        """Handle a request, or queue it behind one that waits or for a later turn."""
        state = self._state
        if state.can_start and not state.queue:
            if not self._turns.must_yield():
                self._start(frame)
                return
            self._schedule_drain()
        elif state.is_ending:
            return
        state.enqueue(frame)
        self._update_reading()

    def _schedule_drain(self) -> None:
        """Handle queued requests in a later turn."""
        if not self._is_drain_scheduled:
            self._is_drain_scheduled = True
            self._turns.call_later(self.info.share, self._drain_in_turn)

    def _drain_in_turn(self) -> None:
        self._is_drain_scheduled = False
        try:
            self._drain_queue()
        except Exception:
            self.abort()  # the queued requests would never be answered
            raise

    def _drain_queue(self) -> None:
        state = self._state
        while state.queue and state.can_start:
            if self._turns.must_yield():
                self._schedule_drain()
                break
            self._start(state.dequeue())
        self.send()
        state.resume_reading()
        self._update_reading()

    def _start(self, frame: memoryview) -> None:
        """Handle a request until it waits."""
        login = self._login
        if self._unnamed is not None:
            self._ask_principal_builder(self._unnamed, frame)
            return
        if login is not None and not self._check_login(login, frame):
            return
        try:
            context, response = self._dispatcher.start(frame, self.info)
        except RequestRejectedError as error:
            if error.response is not None and (login is None or login.is_authenticated):
                self._responses.add([error.response])
            self.close(str(error))
            return
        if isinstance(response, asyncio.Future):
            self._state.change(ConnectionPhase.RESPONSE_PENDING)
            self._pending = response
            self._changes_cluster = context.api.audit is not None
            response.add_done_callback(lambda response: self._finish(context, response))
        else:
            self._respond(context, response)

    def _finish(self, context: RequestContext, response: "asyncio.Future[Parts]") -> None:
        """Respond to a request that has waited, and handle those behind it."""
        self._pending = None
        self.active_ms = self._connections.now_ms()
        if self._state.phase is not ConnectionPhase.RESPONSE_PENDING:
            return
        self._state.change(ConnectionPhase.OPEN)
        if response.cancelled():
            self.close("a request was cancelled")
            return
        if response.exception() is not None:
            # The error response could not be encoded either. Close, so that the client does not wait; asyncio logs why.
            self.close("cannot respond to a request")
            response.result()
        self._respond(context, response.result())
        self.send()
        self._drain_queue()

    def _respond(self, context: RequestContext, response: Parts) -> None:
        if self._login is not None and not self._update_login(self._login, response):
            return
        if response is not None:
            self._responses.add(response)
        if context.close_after:
            self.close("a request without a response failed")
        elif context.throttle_ms:
            self._throttle(context.throttle_ms)
        if self._responses.turn_bytes > TURN_BYTES_MAX:
            self.send()

    # Principal builder

    def _ask_principal_builder(self, client: AuthenticationContext, frame: memoryview) -> None:
        """Name the client before a request is handled."""
        builder = self._dispatcher.broker.policies.principal_builder(self.listener)
        if builder is None:
            self.close("the broker stops")
            return
        self._state.put_back(frame)
        self._change(ConnectionPhase.RESPONSE_PENDING)
        self._pending = asyncio.get_running_loop().create_task(builder.build(client))
        self._changes_cluster = False
        self._pending.add_done_callback(self._end_asking)

    def _end_asking(self, task: "asyncio.Task[str]") -> None:
        self._pending = None
        if task.cancelled() or self._state.phase is not ConnectionPhase.RESPONSE_PENDING:
            return
        self._state.change(ConnectionPhase.OPEN)
        try:
            principal = task.result()
            if self._login is not None:
                self._login.set_principal(principal)
        except (NoPrincipal, LoginRefused) as error:
            if self._login is None:
                self.close(str(error))
                return
            if isinstance(error, NoPrincipal):
                self._login.refuse(str(error))
            self._refuse_login(self._login, None)
            return
        except Exception:
            self.close("the principal builder cannot be asked")
            raise
        self._unnamed = None
        self._set_principal(principal)
        self._drain_queue()

    # Throttling

    def _throttle(self, throttle_ms: int) -> None:
        """Do not read the client for a while; its response is sent first (KIP-219)."""
        self._change(ConnectionPhase.THROTTLED)
        self._timer = asyncio.get_running_loop().call_later(throttle_ms / 1000, self._end_throttle)

    def _end_throttle(self) -> None:
        self._timer = None
        self._change(ConnectionPhase.OPEN)
        self.active_ms = self._connections.now_ms()
        self._drain_queue()

    # Login

    def _check_login(self, login: Authenticator, frame: memoryview) -> bool:
        """Return whether `frame` is a request that may be handled now; a bare token is answered here."""
        try:
            token = login.receive(frame)
        except SaslAuthenticationError as error:
            if error.is_immediate:
                self.close(str(error))
            else:
                self._refuse_login(login, None)
            return False
        if token is None:
            return True
        if self._update_login(login, None):
            self._responses.add([len(token).to_bytes(4, "big"), token])
        return False

    def _update_login(self, login: Authenticator, response: Parts) -> bool:
        """Update the login after a response; return False if it failed, and the response is delayed."""
        if login.state is SaslState.FAILED:
            self._refuse_login(login, response)
            return False
        if login.is_authenticated:
            assert login.user is not None
            self.info.is_identified = True
            if login.needs_principal:
                self._unnamed = self.info.authentication(login.user, login.mechanism)  # SaslHandshake v0
            else:
                self._set_principal(login.principal or f"User:{login.user}")
            self._frames.frame_bytes_max = self._connections.frame_bytes_max
            if login.needs_no_more_checks:
                self._login = None
        return True

    def _set_principal(self, principal: str) -> None:
        self.info.principal = principal
        self.info.share = self._turns.share_of(self.info.principal)

    def _refuse_login(self, login: Authenticator, response: Parts) -> None:
        """Respond after a delay and close, so that passwords cannot be tried quickly (KIP-306)."""
        assert self._sasl is not None
        self.send()
        self._change(ConnectionPhase.REFUSED)
        delay_s = self._sasl.failure_delay_ms / 1000
        self._timer = asyncio.get_running_loop().call_later(
            delay_s, self._close_refused, login.failure, response or []
        )

    def _close_refused(self, reason: str, response: list[Buffer]) -> None:
        self._responses.add(response)
        self._close(reason)

    # State

    def _change(self, phase: ConnectionPhase) -> None:
        self._state.change(phase)
        self._update_reading()

    def _update_reading(self) -> None:
        """Pause or resume the transport as the state requires."""
        if self._state.is_reading is self._is_reading or self._transport.is_closing():
            return
        self._is_reading = self._state.is_reading
        if self._is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Responses

    def send(self) -> None:
        """Write the responses of this turn."""
        size_bytes = self._responses.end_turn()
        if size_bytes:
            self._has_responded = True
            self._statistics.out_bytes += size_bytes
            self._write()

    def _write(self) -> None:
        """Write as much as the client reads."""
        unsent = self._responses.unsent
        while unsent and not self._state.is_write_paused and not self._transport.is_closing():
            try:
                chunk = self._responses.next_chunk()
            except RecordsTruncated as error:
                _log.info("aborting a connection", why=str(error), client=self._client)
                self.abort()
                return
            if len(chunk) == 1:
                self._transport.write(chunk[0])
            else:
                self._transport.writelines(chunk)
        if self._state.is_write_paused:
            self._unread_bytes = self._transport.get_write_buffer_size()

    def close(self, reason: str) -> None:
        """Send the ready responses, then close. Does nothing if the connection is ending already."""
        if not self._state.is_ending:
            self._close(reason)

    def _close(self, reason: str) -> None:
        self._state.change(ConnectionPhase.CLOSING)
        self._cancel_timer()
        _log.info("closing a connection", why=reason, client=self._client)
        self.send()
        self._close_if_written()

    def _close_if_written(self) -> None:
        """Close the transport when it has all responses; until then nothing is read."""
        if self._responses.unsent and not self._transport.is_closing():
            self._update_reading()
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close without sending anything.

        A connection without any response is reset: clients take the orderly end of such a connection for a broker that
        wants them to log in, and do not try again.
        """
        if self._state.phase not in (ConnectionPhase.CLOSING, ConnectionPhase.CLOSED):
            self._state.change(ConnectionPhase.CLOSING)
            socket = self._transport.get_extra_info("socket")
            if not self._has_responded and socket is not None:
                with suppress(OSError):  # the client has gone already
                    socket.setsockopt(SOL_SOCKET, SO_LINGER, RESET_ON_CLOSE)
        elif self._state.phase is ConnectionPhase.CLOSED and self._connections.are_closing:
            self._cancel_pending()
        self._cancel_timer()
        self._transport.abort()

    @property
    def client_host(self) -> str:
        return self.info.client_host

    @property
    def _client(self) -> str:
        return f"{self.info.client_host}:{self.info.client_port}"

    @property
    def is_busy(self) -> bool:
        """Whether a request waits, so that the connection does not count as idle.

        A connection that is not read does count as idle, as in Apache Kafka: the loop would not notice that its client
        has gone, and a throttled client could keep it open for days.
        """
        return self._state.phase is ConnectionPhase.RESPONSE_PENDING and self._state.is_reading

    def has_read(self) -> bool:
        if not self._state.is_write_paused:
            return False
        before, self._unread_bytes = self._unread_bytes, self._transport.get_write_buffer_size()
        return self._unread_bytes < before

    def statistics(self) -> dict[str, object]:
        return {
            "client": self._client,
            "software": f"{self.info.client_software_name} {self.info.client_software_version}",
            "requests_count": self.info.requests_count,
            **self._state.statistics(),
            "write_buffer_bytes": self._transport.get_write_buffer_size(),
        }
