"""One client's connection: requests in order, answers in order, bounded memory.

A request that needs no waiting is parsed, handled and answered within the callback that received it: no task,
no queue. One that waits becomes a task; what comes behind it on the same connection queues up, and beyond a
bound the socket is not read any more. Requests queue up, too, when the turn of the event loop is over.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Generator
from typing import Any, cast

from barnabas.api.context import ConnectionInfo, RequestContext
from barnabas.api.dispatch import Dispatcher, RequestRejectedError
from barnabas.base.buffers import Buffer
from barnabas.net.connections import Connections
from barnabas.security.sasl.authenticator import Authenticator, SaslAuthenticationError, SaslState
from barnabas.security.sasl.server import SaslServer
from barnabas.telemetry.logs import get_logger
from barnabas.wire.framing import FrameReader, InvalidFrameError

#: Requests that may queue behind one that waits, before the socket is left unread.
QUEUED_COUNT_MAX = 32
QUEUED_BYTES_MAX = 1 << 20

#: Answers of a turn that are joined into one buffer; larger ones go out as they are, uncopied.
COPIED_BYTES_MAX = 16 << 10

#: Answers of a turn wait for one another up to here: a client that asks for more must also read it.
HELD_BYTES_MAX = 64 << 10

#: What is handed to the transport at a time; the rest of a larger answer follows as the client reads.
WRITTEN_BYTES_MAX = 1 << 20

_log = get_logger("barnabas.net")

Parts = list[Buffer] | None


class ServerConnection(asyncio.BufferedProtocol):
    """The protocol object of one socket."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        listener: str,
        connections: Connections,
        sasl: SaslServer | None = None,
    ) -> None:
        """`sasl` is what clients log in against; None where nobody does."""
        self._dispatcher = dispatcher
        self.listener = listener
        self._connections = connections
        self._turns = dispatcher.node.turns
        self._is_continued = False  #: what is queued will be handled in a later turn
        self._sasl = sasl
        self._login: Authenticator | None = None  #: while it has a say in what comes
        self._frames = FrameReader(connections.scratch, connections.frame_bytes_max)
        self._queue: deque[bytearray] = deque()
        self._queued_bytes = 0
        self._task: asyncio.Task[Parts] | None = None  #: the request that waits, if one does
        self._out: list[Buffer] = []  #: answers of this turn
        self._held_bytes = 0  #: of `_out`, as far as it can be large
        self._unsent: deque[Buffer] = deque()  #: of large answers; only while writing is paused
        self._write_paused = False
        self._read_paused = False
        self._muted: asyncio.TimerHandle | None = (
            None  #: ends the time in which a throttled client is not heard
        )
        self._closing = False
        self.active_ms = 0  #: when bytes last came in, on the monotonic clock

    # Transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        host, port = (transport.get_extra_info("peername") or ("unknown", 0))[:2]
        self.info = ConnectionInfo(listener=self.listener, client_host=host, client_port=port)
        if self._sasl is not None:
            self.info.authenticator = self._login = self._sasl.authenticator(host)
            self._frames.frame_bytes_max = self._sasl.receive_bytes_max
        self.active_ms = self._connections.now_ms()
        self._connections.size_buffers(self._transport.get_extra_info("socket"))
        refusal = self._connections.add(self)
        if refusal is not None:
            self.close(refusal)
        elif delay_ms := self._dispatcher.connection_delay_ms(host):
            self._refuse_connection(delay_ms)

    def connection_lost(self, error: Exception | None) -> None:
        """Forget everything that was under way."""
        self._closing = True
        self._queue.clear()
        self._unsent.clear()
        if self._task is not None:
            self._task.cancel()
        if self._muted is not None:
            self._muted.cancel()
        self._connections.remove(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the transport puts what it receives."""
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the requests that are whole now."""
        self.active_ms = self._connections.now_ms()
        self._dispatcher.statistics.bytes_in(nbytes)
        self._frames.received(nbytes)
        self._turns.begin()
        try:
            while (frame := self._frames.next_frame()) is not None:
                self._receive(frame)
        except InvalidFrameError as error:
            self.close(str(error))
        if self._out:
            self._connections.send_soon(self)

    def pause_writing(self) -> None:
        """Stop answering: the client reads more slowly than it asks."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """Go on with what queued up meanwhile."""
        self._write_paused = False
        self._send_unsent()
        self._drain_queue()

    # Requests

    @property
    def _can_go_on(self) -> bool:
        """Whether no request waits, the client reads its answers and is not throttled."""
        return self._task is None and self._muted is None and not self._write_paused and not self._closing

    def _receive(self, frame: memoryview) -> None:
        """Handle a request, or queue it behind one that waits or for a later turn."""
        if self._closing:
            return
        if not self._queue and self._can_go_on:
            if not self._turns.is_over():
                self._start(frame)
                if self._held_bytes > HELD_BYTES_MAX:
                    self.send()
                return
            self._continue_later()
        self._queue.append(bytearray(frame))
        self._queued_bytes += len(frame)
        if len(self._queue) >= QUEUED_COUNT_MAX or self._queued_bytes >= QUEUED_BYTES_MAX:
            self._pause_reading()

    def _continue_later(self) -> None:
        """Handle what is queued in a later turn."""
        if not self._is_continued:
            self._is_continued = True
            self._turns.call_later(self.info.share, self._continue)

    def _continue(self) -> None:
        self._is_continued = False
        try:
            self._drain_queue()
        except Exception:
            self.abort()  # what is queued would never be answered
            raise

    def _start(self, frame: memoryview) -> None:
        """Handle one request as far as it goes without waiting."""
        login = self._login
        if login is not None and not self._may_start(login, frame):
            return
        try:
            context, answer = self._dispatcher.begin(frame, self.info)
        except RequestRejectedError as refused:
            if refused.answer is not None and (login is None or login.is_complete):
                self._out.append(refused.answer)
            self.close(str(refused))
            return
        if answer is None or isinstance(answer, list):
            self._answered(context, answer)
            return
        steps = answer.__await__()
        try:
            awaited = next(steps)
        except StopIteration as done:
            self._answered(context, done.value)
        else:
            self._task = asyncio.get_running_loop().create_task(_resume(steps, awaited))
            self._task.add_done_callback(lambda task: self._finished(context, task))

    def _finished(self, context: RequestContext, task: "asyncio.Task[Parts]") -> None:
        self._task = None
        if self._closing:
            return
        if task.cancelled():
            self.close("a request was cancelled")
            return
        if task.exception() is not None:
            # Not even the refusal could be encoded: asyncio logs why, and the client must not wait for ever.
            self.close("a request could not be answered")
            task.result()
        self._answered(context, task.result())
        self.send()
        self._drain_queue()

    def _answered(self, context: RequestContext, parts: Parts) -> None:
        if self._login is not None and not self._step_login(self._login, parts):
            return
        if parts is not None:
            self._out += parts
            for part in parts:
                self._held_bytes += len(part)
        if context.close_after:
            self.close("a request without an answer failed")
        elif context.throttle_ms:
            self._mute(context.throttle_ms)

    def _drain_queue(self) -> None:
        while self._queue and self._can_go_on:
            if self._turns.is_over():
                self._continue_later()
                break
            frame = self._queue.popleft()
            self._queued_bytes -= len(frame)
            self._start(memoryview(frame))
            if self._held_bytes > HELD_BYTES_MAX:
                self.send()
        self.send()
        if self._read_paused and not self._queue and self._muted is None and not self._closing:
            self._read_paused = False
            self._transport.resume_reading()

    def _pause_reading(self) -> None:
        if not self._read_paused:
            self._read_paused = True
            self._transport.pause_reading()

    # Quotas

    def _mute(self, throttle_ms: int) -> None:
        """Do not hear the client for a while; its answer goes out first (KIP-219)."""
        self._pause_reading()
        self._muted = asyncio.get_running_loop().call_later(throttle_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self.active_ms = self._connections.now_ms()
        self._drain_queue()

    def _refuse_connection(self, delay_ms: int) -> None:
        """Hold a connection that came too soon, unheard, then close it (KIP-612)."""
        self._closing = True
        self._pause_reading()
        self._muted = asyncio.get_running_loop().call_later(delay_ms / 1000, self.abort)

    # Login

    def _may_start(self, login: Authenticator, frame: memoryview) -> bool:
        """Whether a frame is a request that may be handled now."""
        try:
            token = login.receive(frame)
        except SaslAuthenticationError as ended:
            if ended.at_once:
                self.close(str(ended))
            else:
                self._refuse_login(login, None)
            return False
        if token is None:
            return True
        if self._step_login(login, None):
            self._out += [len(token).to_bytes(4, "big"), token]
        return False

    def _step_login(self, login: Authenticator, parts: Parts) -> bool:
        """Follow the login after an answer; False when it failed, and the answer is held back for a while."""
        if login.state is SaslState.FAILED:
            self._refuse_login(login, parts)
            return False
        if login.is_complete:
            self.info.principal = f"User:{login.user}"
            self.info.share = self._turns.share_of(self.info.principal)
            self._frames.frame_bytes_max = self._connections.frame_bytes_max
            if login.is_done:
                self._login = None
        return True

    def _refuse_login(self, login: Authenticator, parts: Parts) -> None:
        """Answer after a while, unheard meanwhile, and close: guessing takes its time."""
        assert self._sasl is not None
        self._closing = True
        self.send()
        self._pause_reading()
        delay_s = self._sasl.failure_delay_ms / 1000
        self._muted = asyncio.get_running_loop().call_later(
            delay_s, self._close_after_flush, login.failure, parts
        )

    def _close_after_flush(self, why: str, parts: Parts) -> None:
        self._muted = None
        self._closing = False
        self._out += parts or []
        self.close(why)

    # Answers

    def send(self) -> None:
        """Hand over what has been answered."""
        out = self._out
        if not out:
            return
        self._out, self._held_bytes = [], 0
        size_bytes = sum(map(len, out))
        self._dispatcher.statistics.bytes_out(size_bytes)
        if self._transport.is_closing():
            return
        if self._unsent or size_bytes > WRITTEN_BYTES_MAX:
            self._unsent += out
            self._send_unsent()
        elif size_bytes <= COPIED_BYTES_MAX:
            self._transport.write(b"".join(out))  # cheaper than handing over many small buffers
        else:
            self._transport.writelines(out)

    def _send_unsent(self) -> None:
        """Hand over as much of large answers as the client reads."""
        unsent = self._unsent
        while unsent and not self._write_paused:
            written, size_bytes = [], 0
            while unsent and size_bytes < WRITTEN_BYTES_MAX:
                size_bytes += len(unsent[0])
                written.append(unsent.popleft())
            self._transport.writelines(written)

    def close(self, why: str) -> None:
        """Send what is ready, then close, with a line in the log."""
        if self._closing:
            return
        self._closing = True
        _log.info("closing a connection", why=why, client=f"{self.info.client_host}:{self.info.client_port}")
        self.send()
        if self._unsent:
            unsent, self._unsent = self._unsent, deque()
            self._transport.writelines(unsent)
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._closing = True
        self._transport.abort()

    @property
    def client_host(self) -> str:
        """The address of its other end."""
        return self.info.client_host

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way: such a connection is not idle.

        One that is not read, full or throttled, is none: the loop would never tell that its client has gone, and a
        throttled one could be held for days. Apache Kafka closes those, too.
        """
        return self._task is not None and not self._read_paused

    def statistics(self) -> dict[str, object]:
        """Who is there and what is under way."""
        return {
            "client": f"{self.info.client_host}:{self.info.client_port}",
            "software": f"{self.info.client_software_name} {self.info.client_software_version}",
            "requests_count": self.info.requests_count,
            "queued_count": len(self._queue),
            "is_muted": self._muted is not None,
            "write_buffer_bytes": self._transport.get_write_buffer_size(),
        }


class _Started:
    """A coroutine that has run to its first wait, made awaitable again."""

    def __init__(self, steps: Generator[Any, None, Parts], awaited: Any) -> None:
        self._steps = steps
        self._awaited = awaited

    def __await__(self) -> Generator[Any, None, Parts]:
        try:
            yield self._awaited
        except BaseException as error:  # it belongs into the coroutine, which may catch it and go on
            try:
                awaited = self._steps.throw(error)
            except StopIteration as done:
                return cast("Parts", done.value)
            return (yield from _Started(self._steps, awaited).__await__())
        return (yield from self._steps)


def _resume(steps: Generator[Any, None, Parts], awaited: Any) -> Coroutine[Any, Any, Parts]:
    async def run() -> Parts:
        return await _Started(steps, awaited)

    return run()
