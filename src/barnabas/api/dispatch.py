"""From the bytes of a request to the bytes of its answer: header, version, handler, errors. No IO."""

import gc
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from barnabas.api.context import ConnectionInfo, EncodedResponse, Node, RequestContext
from barnabas.api.data.produce_at_once import ProduceAtOnce
from barnabas.api.groups.commits_at_once import CommitsAtOnce
from barnabas.api.refused_changes import CHANGING_APIS, remark
from barnabas.api.registry import ApiSpec, Handler
from barnabas.api.short_way import ShortWay
from barnabas.api.throttling import charge
from barnabas.base.buffers import Buffer
from barnabas.base.stopwatch import Stopwatch
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.requests import RequestStatistics
from barnabas.wire import primitives
from barnabas.wire.codec import Malformed, decode, encode_parts
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.framing import FrameReader
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Message, has_more_elements

_log = get_logger("barnabas.api")

PRODUCE = ProduceRequest.API_KEY
API_VERSIONS = ApiVersionsRequest.API_KEY

#: What is asked so often that building messages in between would be most of its cost.
SHORT_WAYS: Mapping[int, Callable[[Node, ConnectionInfo], ShortWay]] = {
    PRODUCE: ProduceAtOnce,
    OffsetCommitRequest.API_KEY: CommitsAtOnce,
}
ShortWays = Mapping[int, ShortWay]

#: A request without records is read as a whole, on the one thread that serves everybody.
REQUEST_BYTES_MAX = 8 << 20

#: What takes time is not the bytes of a request but its elements, all arrays together: millions of empty names would
#: take half a minute to answer, and half a gigabyte. A fetch of fifty thousand topics fits.
REQUEST_ELEMENTS_MAX = 100_000

#: A request of so many bytes may have thousands of elements. One with more than `DECODED_ELEMENTS_MAX`, which take a
#: millisecond or so, is decoded and decided in the worker's threads.
LARGE_REQUEST_BYTES = 16 << 10
DECODED_ELEMENTS_MAX = 2_000

#: An answer with more elements is encoded in the worker's thread.
LARGE_ANSWER_ELEMENTS = 500

#: What a client is told of a fault of ours; the log has the rest.
UNEXPECTED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The broker met an error that it did not expect.")

_KEY = struct.Struct(">4xh")  #: behind the size
_unpack_key = _KEY.unpack_from
_HEADER_START = struct.Struct(">hhi")
_FRAME_START = struct.Struct(">ii")
_FRAME_START_FLEXIBLE = struct.Struct(">iiB")
_ERROR_ANSWER = struct.Struct(">iih")


class RequestHeader(NamedTuple):
    """Request header v0-v2: what stands before every request's body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


class Undecoded(NamedTuple):
    """A large request, which is decoded in the worker's thread when it is answered."""

    message: type[Message]
    version: int
    body: bytes

    def decode(self) -> Message:
        """Read the message.

        The garbage collector rests meanwhile: it would go through the growing heap again and again, which takes as
        long as the reading (measured: two million names 4.0 s, without it 2.1 s).

        :raises Malformed: As `wire.codec.decode`.
        """
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return decode(self.message, self.version, self.body, 0, REQUEST_ELEMENTS_MAX)
        finally:
            if was_enabled:
                gc.enable()


class Refused(Exception):
    """A request that cannot be answered as asked: `answer` may go out, then the connection closes."""

    def __init__(self, reason: str, answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


Response = Message | EncodedResponse | None

#: Stands in for every handler, and calls `context.api.handle` where it lets a request pass. Records of a Produce
#: request must be used before the first wait: they are views of the network buffer.
Interceptor = Callable[[RequestContext, Message], Awaitable[Response]]


class Dispatcher:
    """Answers requests of one node; the same for all its connections."""

    def __init__(self, node: Node, statistics: RequestStatistics) -> None:
        self.node = node
        self.statistics = statistics
        self.interceptor: Interceptor | None = None

    def short_ways(self, connection: ConnectionInfo) -> ShortWays:
        """Those that one connection has."""
        return {api_key: make(self.node, connection) for api_key, make in SHORT_WAYS.items()}

    def answer_at_once(self, frames: FrameReader, ways: ShortWays) -> tuple[bytes, int]:
        """The answers to the requests next in `frames` that have a short way and can take it, and how many they are."""
        if (
            frames.end - frames.position < _KEY.size
            or self.interceptor is not None
            or self.node.tracer.enabled
        ):
            return b"", 0
        api_key = _unpack_key(frames.data, frames.position)[0]
        way = ways.get(api_key)
        if way is None:
            return b"", 0
        started_ns = self.statistics.started()
        answers, count = way.take(frames)
        if count:
            elapsed_ns = self.statistics.finished(api_key, started_ns, count)
            if self.node.quotas.enabled:
                way.charge(elapsed_ns)
        return answers, count

    def parse(self, frame: Buffer, connection: ConnectionInfo) -> tuple[RequestContext, Message | Undecoded]:
        """Read a request. Produce keeps views of `frame`; every other API has copies of what it needs.

        :raises Refused: When it is unknown or malformed.
        """
        header = read_header(frame, self.node.apis)
        spec = self.node.apis.get(header.api_key)
        if spec is None or header.api_version not in spec.versions:
            if header.api_key != API_VERSIONS or spec is None:
                raise self._unsupported(header, spec)
            # KIP-511: answered at version 0, so that the client learns what to ask instead.
            context = self._context(header._replace(api_version=0), spec, connection)
            context.version_unsupported = True
            return context, ApiVersionsRequest()
        if header.api_key != PRODUCE and len(frame) > REQUEST_BYTES_MAX:
            message = f"{spec.name} of {len(frame)} bytes: at most {REQUEST_BYTES_MAX} are read of what has no records"
            raise Refused(message)
        body = frame if header.api_key == PRODUCE else bytes(frame[header.body_position :])
        position = header.body_position if header.api_key == PRODUCE else 0
        may_be_large = header.api_key != PRODUCE and len(frame) >= LARGE_REQUEST_BYTES
        elements_max = DECODED_ELEMENTS_MAX if may_be_large else REQUEST_ELEMENTS_MAX
        request: Message | Undecoded
        try:
            request = decode(spec.request, header.api_version, body, position, elements_max)
        except Malformed as error:
            if not may_be_large:
                raise Refused(str(error)) from error
            request = Undecoded(spec.request, header.api_version, bytes(body))
        context = self._context(header, spec, connection)
        context.size_bytes = len(frame)
        context.is_large = isinstance(request, Undecoded)
        return context, request

    def _context(self, header: RequestHeader, spec: ApiSpec, connection: ConnectionInfo) -> RequestContext:
        connection.requests_count += 1
        return RequestContext(
            self.node, connection, spec, header.api_version, header.correlation_id, header.client_id
        )

    def _unsupported(self, header: RequestHeader, spec: ApiSpec | None) -> Refused:
        if spec is None:
            reason = f"api key {header.api_key} is not served"
        else:
            first, last = spec.versions
            reason = f"{spec.name} version {header.api_version} is not served: versions {first} to {last} are"
        answer = _ERROR_ANSWER.pack(6, header.correlation_id, ErrorCode.UNSUPPORTED_VERSION)
        return Refused(reason, answer)

    async def answer(self, context: RequestContext, request: Message | Undecoded) -> list[Buffer] | None:
        """Handle a request; the buffers of its answer, size included, or None where none is wanted."""
        if isinstance(request, Undecoded):
            try:
                request = await self.node.worker.call(request.decode)
            except Malformed as error:
                _log.info("a request cannot be read", why=str(error))
                context.close_after = True
                return None
        tracer = self.node.tracer
        if not tracer.enabled:
            return await self._answer(context, request)
        context.span = tracer.begin(context.api.name)
        try:
            return await self._answer(context, request)
        finally:
            tracer.end(
                context.span,
                api_key=context.api.api_key,
                api_version=context.api_version,
                correlation_id=context.correlation_id,
                client_id=context.client_id,
                client_host=context.connection.client_host,
                principal=context.connection.principal,
            )

    async def _answer(self, context: RequestContext, request: Message) -> list[Buffer] | None:
        started_ns = self.statistics.started()
        try:
            if context.connection.authenticator is not None:
                context.connection.authenticator.admit(context.api.api_key, context.api.name)
            handle = self.interceptor or context.api.handle
            if self.node.quotas.enabled:
                response: Response = await self._metered(handle, context, request)
            else:
                response = await handle(context, request)
            if context.api.api_key in CHANGING_APIS:
                await remark(context, request, response)
            parts = None if response is None else await _encoded(context, response)
            if context.is_large:
                self.node.worker.free(request, response)
        except KafkaError as error:
            self.statistics.failed(context.api.api_key)
            parts = await _refuse(context, request, error)
        except Exception:
            self.statistics.crashed(context.api.name, context.api_version)
            parts = await _refuse(context, request, UNEXPECTED)
        self.statistics.finished(context.api.api_key, started_ns)
        return parts

    async def _metered(self, handle: Handler, context: RequestContext, request: Message) -> Response:
        """Handle a request on its client's account, however it ends."""
        watch: Stopwatch[Response] = Stopwatch(handle(context, request), self.statistics.started)
        try:
            return await watch
        finally:
            charge(context, request, watch.elapsed_ns)

    def connection_delay_ms(self, host: str) -> int:
        """How long a new connection from an address must be held before it is closed; 0: it is welcome (KIP-612)."""
        quotas = self.node.quotas
        return quotas.connected(host) if quotas.has_addresses else 0


def read_header(frame: Buffer, apis: Mapping[int, ApiSpec]) -> RequestHeader:
    """Read a request header; the tagged fields of v2 are skipped.

    :raises Refused: When the frame is too short or the client id is not text.
    """
    try:
        api_key, api_version, correlation_id = _HEADER_START.unpack_from(frame)
        client_id, position = primitives.read_nullable_string(frame, _HEADER_START.size)
        spec = apis.get(api_key)
        if spec is not None and spec.is_flexible(api_version):
            position = primitives.skip_tagged_fields(frame, position)
    except (ValueError, IndexError, struct.error) as error:
        text = f"a request header cannot be read: {error}"
        raise Refused(text) from error
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


async def _refuse(context: RequestContext, request: Message, error: KafkaError) -> list[Buffer] | None:
    """A whole request in error. Who wants no answer (acks=0) cannot be told but by closing the connection."""
    if isinstance(request, ProduceRequest) and request.acks == 0:
        context.close_after = True
        return None
    if not context.is_large:
        response = context.api.refuse(request, error)
    else:
        response = await context.node.worker.call(context.api.refuse, request, error)
    if context.api.api_key in CHANGING_APIS:
        await remark(context, request, response)
    return await _encoded(context, response)


async def _encoded(context: RequestContext, response: Message | EncodedResponse) -> list[Buffer]:
    if isinstance(response, Message) and has_more_elements(response, LARGE_ANSWER_ELEMENTS):
        return await context.node.worker.call(encode_response, context, response)
    return encode_response(context, response)


def encode_response(context: RequestContext, response: Message | EncodedResponse) -> list[Buffer]:
    """Size, header and body of an answer; record data stands in it uncopied."""
    out = bytearray(_FRAME_START.size)
    if context.api.is_flexible(context.api_version) and context.api.api_key != API_VERSIONS:
        out.append(0)  # response header v1: no tagged fields (KIP-482); ApiVersions stays at v0 (KIP-511)
    if context.throttle_ms:
        response = _throttled(context, response)
    if isinstance(response, EncodedResponse):
        parts: list[Buffer] = [out, response.body]
    else:
        parts = encode_parts(response, context.api_version, out)
    size_bytes = sum(map(len, parts)) - 4
    _FRAME_START.pack_into(out, 0, size_bytes, context.correlation_id)
    return parts


def _throttled(context: RequestContext, response: Message | EncodedResponse) -> Message | EncodedResponse:
    """The answer with the time that its client must wait, where the version has room for it."""
    if isinstance(response, EncodedResponse):  # of Metadata, which has it in front from version 3 on
        throttle = context.throttle_ms.to_bytes(4, "big") if context.api_version >= 3 else b""
        return EncodedResponse(throttle + response.body[len(throttle) :])
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = context.throttle_ms
    return response
