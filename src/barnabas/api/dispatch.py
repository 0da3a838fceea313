"""Dispatch: from the bytes of a request to the bytes of its response. No IO."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from barnabas.api.audit import record_refusals
from barnabas.api.context import BrokerContext, ConnectionInfo, EncodedResponse, RequestContext
from barnabas.api.limits import REQUEST_BYTES_MAX, REQUEST_ELEMENTS_MAX
from barnabas.api.registry import ApiSpec, UseHandler
from barnabas.api.throttling import charge
from barnabas.base import eager
from barnabas.base.buffers import Buffer
from barnabas.base.stopwatch import Stopwatch
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.requests import RequestStatistics
from barnabas.wire import primitives
from barnabas.wire.codec import DecodeError, decode, encode_parts
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message, has_more_elements

_log = get_logger("barnabas.api")


#: A request of this size may have thousands of elements. One with more than `DECODED_ELEMENTS_MAX`, which take about a
#: millisecond, is decoded and decided in a worker thread.
LARGE_REQUEST_BYTES = 16 << 10
DECODED_ELEMENTS_MAX = 2_000

#: A response with more elements is encoded in a worker thread.
LARGE_RESPONSE_ELEMENTS = 500

#: Encoded bodies up to this size are joined with their header; larger ones are sent without being copied.
JOINED_BYTES_MAX = 4 << 10

#: The response to an internal error; the log has the details.
UNEXPECTED = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The broker failed with an unexpected error.")

_HEADER_START = struct.Struct(">hhih")  #: API key, version, correlation id, bytes of the client id or -1
_unpack_header_start = _HEADER_START.unpack_from
_FRAME_START = struct.Struct(">ii")  #: size without its own bytes, correlation id
_FRAME_START_BYTES = _FRAME_START.size
_pack_start, _pack_start_into = _FRAME_START.pack, _FRAME_START.pack_into
_pack_flexible_start = struct.Struct(">iiB").pack  #: the same, no tagged fields
_ERROR_RESPONSE = struct.Struct(">iih")


class RequestHeader(NamedTuple):
    """Request header v0-v2."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


class Undecoded(NamedTuple):
    """A large request, which is decoded in a worker thread."""

    message: type[Message]
    version: int
    body: bytes

    def decode(self) -> Message:
        """Decode the message.

        :raises DecodeError: As `wire.codec.decode`.
        """
        return decode(self.message, self.version, self.body, 0, REQUEST_ELEMENTS_MAX)


class RequestRejectedError(Exception):
    """A request that cannot be handled: `response` may be sent, then the connection is closed."""

    def __init__(self, reason: str, response: bytes | None = None) -> None:
        super().__init__(reason)
        self.response = response


ResponseT = TypeVar("ResponseT", bound=Message | EncodedResponse | None)
Response: TypeAlias = Message | EncodedResponse | None

#: The result of a fast path.
FastResponse: TypeAlias = EncodedResponse | Coroutine[Any, Any, EncodedResponse | None] | UseHandler | None

#: The buffers of a response, size included; None for a request without a response.
Parts: TypeAlias = list[Buffer] | None

#: Replaces every handler, and calls `context.api.handle` for requests that it lets pass. Records of a Produce request
#: must be used before the first wait: they are views of the network buffer.
Interceptor = Callable[[RequestContext, Message], Awaitable[Response]]


class Dispatcher:
    """Answers the requests of all connections of a broker."""

    def __init__(self, broker: BrokerContext, statistics: RequestStatistics) -> None:
        self.broker = broker
        self.statistics = statistics
        self.interceptor: Interceptor | None = None
        self._fast_paths = {key: spec for key, spec in broker.apis.items() if spec.fast_path is not None}

    def start(
        self, frame: memoryview, connection: ConnectionInfo
    ) -> tuple[RequestContext, "Parts | asyncio.Future[Parts]"]:
        """Respond to a request within this turn, or return a future of the response if it has to wait.

        :raises RequestRejectedError: If the request is unknown or malformed.
        """
        context, begun = self.begin(frame, connection)
        if begun is None or isinstance(begun, list):
            return context, begun
        return context, eager.start(begun, needs_task=context.needs_task)

    def begin(
        self, frame: memoryview, connection: ConnectionInfo
    ) -> tuple[RequestContext, Parts | Coroutine[Any, Any, Parts]]:
        """Respond to a request within this turn if its API has a fast path and nothing has to wait.

        Else return a coroutine that responds to it. A coroutine that has not waited yet may use `frame`.

        :raises RequestRejectedError: If the request is unknown or malformed.
        """
        header = read_header(frame, self.broker.apis)
        api_key, version, correlation_id, client_id, position = header
        spec = self._fast_paths.get(api_key) if self.interceptor is None else None
        if (
            spec is not None
            and spec.versions[0] <= version <= spec.versions[1]
            and not _may_be_large(spec, frame)
        ):
            context = RequestContext(
                self.broker, connection, spec, version, correlation_id, client_id, len(frame)
            )
            response = self._respond_fast(context, frame, position)
            if not isinstance(response, UseHandler):
                connection.requests_count += 1
                return context, response
        context, request = self._parse(header, frame, connection)
        return context, self.respond(context, request)

    def _respond_fast(
        self, context: RequestContext, frame: memoryview, position: int
    ) -> Parts | Coroutine[Any, Any, Parts] | UseHandler:
        started_ns = self.statistics.clock_ns()
        api = context.api
        assert api.fast_path is not None
        if self.broker.tracer.enabled:
            context.span = self.broker.tracer.begin(api.name)
        try:
            if context.connection.authenticator is not None:
                context.connection.authenticator.admit(api.api_key, api.name)
            response: FastResponse
            if self.broker.quotas.enabled:
                response = self._metered_fast_path(context, frame, position, started_ns)
            else:
                response = api.fast_path(context, frame, position)
            if response is not None and not isinstance(response, EncodedResponse):
                if isinstance(response, UseHandler):
                    return response
                return self._respond_later(context, response, started_ns)
            parts = None if response is None else encode_response(context, response)
        except DecodeError as error:
            raise RequestRejectedError(str(error)) from error
        except Exception as error:
            request = _decoded(context, frame, position)
            kafka_error = self._to_kafka_error(context, error)
            closes = _close_if_unanswered(context, request)
            parts = None if closes else encode_response(context, api.error_response(request, kafka_error))
        self.statistics.finished(api.api_key, started_ns)
        self._end_span(context)
        return parts

    def _metered_fast_path(
        self, context: RequestContext, frame: memoryview, position: int, started_ns: int
    ) -> FastResponse:
        """Take the fast path and charge its time to the client, also after an error; a handler that takes over is
        metered itself.

        :raises DecodeError: If the request cannot be read; this is not charged, because the connection is closed.
        """
        assert context.api.fast_path is not None
        try:
            response: FastResponse = context.api.fast_path(context, frame, position)
        except DecodeError:
            raise
        except Exception:
            charge(context, self.statistics.clock_ns() - started_ns, is_answered=True)
            raise
        elapsed_ns = self.statistics.clock_ns() - started_ns
        if isinstance(response, UseHandler):
            return response
        if response is None or isinstance(response, EncodedResponse):
            charge(context, elapsed_ns, is_answered=response is not None)
            return response
        return self._metered(context, response, elapsed_ns)

    async def _respond_later(
        self, context: RequestContext, work: Coroutine[Any, Any, EncodedResponse | None], started_ns: int
    ) -> Parts:
        parts: Parts = None
        try:
            response = await work
            parts = None if response is None else encode_response(context, response)
        except Exception:
            self.statistics.crashed(context.api.name, context.api_version)
            context.close_after = True
        finally:
            self.statistics.finished(context.api.api_key, started_ns)
            self._end_span(context)
        return parts

    def parse(self, frame: Buffer, connection: ConnectionInfo) -> tuple[RequestContext, Message | Undecoded]:
        """Read a request. Records are views of `frame`; everything else is copied.

        :raises RequestRejectedError: If it is unknown or malformed.
        """
        return self._parse(read_header(frame, self.broker.apis), frame, connection)

    def _parse(
        self, header: RequestHeader, frame: Buffer, connection: ConnectionInfo
    ) -> tuple[RequestContext, Message | Undecoded]:
        spec = self.broker.apis.get(header.api_key)
        if spec is None or header.api_version not in spec.versions:
            if spec is None or not spec.negotiates_versions:
                raise self._unsupported(header, spec)
            # KIP-511: answered at version 0, so that the client learns the served versions.
            context = self._context(header._replace(api_version=0), spec, connection, len(frame))
            context.version_unsupported = True
            return context, spec.request()
        if not spec.carries_records and len(frame) > REQUEST_BYTES_MAX:
            limit = f"requests without records may have at most {REQUEST_BYTES_MAX}"
            message = f"{spec.name} of {len(frame)} bytes: {limit}"
            raise RequestRejectedError(message)
        if spec.carries_records:
            body, position = frame, header.body_position
        else:
            body, position = bytes(frame[header.body_position :]), 0
        may_be_large = _may_be_large(spec, frame)
        elements_max = DECODED_ELEMENTS_MAX if may_be_large else REQUEST_ELEMENTS_MAX
        request: Message | Undecoded
        try:
            request = decode(spec.request, header.api_version, body, position, elements_max)
        except DecodeError as error:
            if not may_be_large:
                raise RequestRejectedError(str(error)) from error
            request = Undecoded(spec.request, header.api_version, bytes(body))
        context = self._context(header, spec, connection, len(frame))
        context.is_large = isinstance(request, Undecoded)
        return context, request

    def _context(
        self, header: RequestHeader, spec: ApiSpec, connection: ConnectionInfo, size_bytes: int
    ) -> RequestContext:
        connection.requests_count += 1
        return RequestContext(
            self.broker,
            connection,
            spec,
            header.api_version,
            header.correlation_id,
            header.client_id,
            size_bytes,
        )

    def _unsupported(self, header: RequestHeader, spec: ApiSpec | None) -> RequestRejectedError:
        if spec is None:
            reason = f"api key {header.api_key} is not served"
        else:
            first, last = spec.versions
            reason = f"{spec.name} version {header.api_version} is not served: versions {first} to {last} are"
        response = _ERROR_RESPONSE.pack(6, header.correlation_id, ErrorCode.UNSUPPORTED_VERSION)
        return RequestRejectedError(reason, response)

    async def respond(self, context: RequestContext, request: Message | Undecoded) -> Parts:
        """Handle a request; return the buffers of its response, size included, or None if it has no response."""
        if isinstance(request, Undecoded):
            try:
                request = await self.broker.worker.call(request.decode)
            except DecodeError as error:
                _log.info("a request cannot be read", why=str(error))
                context.close_after = True
                return None
        if not self.broker.tracer.enabled:
            return await self._respond(context, request)
        context.span = self.broker.tracer.begin(context.api.name)
        try:
            return await self._respond(context, request)
        finally:
            self._end_span(context)

    def _end_span(self, context: RequestContext) -> None:
        if context.span is not None:
            self.broker.tracer.end(
                context.span,
                api_key=context.api.api_key,
                api_version=context.api_version,
                correlation_id=context.correlation_id,
                client_id=context.client_id,
                client_host=context.connection.client_host,
                principal=context.connection.principal,
            )

    async def _respond(self, context: RequestContext, request: Message) -> Parts:
        started_ns = self.statistics.clock_ns()
        api = context.api
        response: Response
        try:
            if context.connection.authenticator is not None:
                context.connection.authenticator.admit(api.api_key, api.name)
            if api.needs_latest_metadata:
                await self.broker.metadata.catch_up(getattr(request, "timeout_ms", None))
            work = (self.interceptor or api.handle)(context, request)
            response = await (self._metered(context, work) if self.broker.quotas.enabled else work)
        except Exception as error:
            response = await self._error_response(context, request, error)
        try:
            if api.audit is not None:
                await record_refusals(context, request, response)
            parts = None if response is None else await _encoded(context, response)
            if context.is_large:
                self.broker.worker.free(request, response)
        except Exception as error:
            error_response = await self._error_response(context, request, error)
            parts = None if error_response is None else await _encoded(context, error_response)
        self.statistics.finished(api.api_key, started_ns)
        return parts

    async def _error_response(
        self, context: RequestContext, request: Message, error: Exception
    ) -> Message | None:
        """Return the API's response to an error; None if the connection is closed instead."""
        kafka_error = self._to_kafka_error(context, error)
        if _close_if_unanswered(context, request):
            return None
        response: Message = await context.compute(context.api.error_response, request, kafka_error)
        return response

    def _to_kafka_error(self, context: RequestContext, error: Exception) -> KafkaError:
        """Count an error; log an unexpected one, and return UNKNOWN_SERVER_ERROR for it."""
        if isinstance(error, KafkaError):
            self.statistics.failed(context.api.api_key)
            return error.without_traceback()
        self.statistics.crashed(context.api.name, context.api_version)
        return UNEXPECTED

    async def _metered(
        self, context: RequestContext, work: Awaitable[ResponseT], spent_ns: int = 0
    ) -> ResponseT:
        """Run the work and charge its time to the client, also after an error; `spent_ns` is the time before it."""
        watch = Stopwatch(work, self.statistics.clock_ns)
        is_answered = True
        try:
            response = await watch
            is_answered = response is not None
            return response
        finally:
            charge(context, spent_ns + watch.elapsed_ns, is_answered=is_answered)

    def count_connection(self, host: str) -> int:
        """Count a new connection from an address (KIP-612).

        Return 0 if it is accepted. Else it is not counted, and must be closed after that many ms.
        """
        quotas = self.broker.quotas
        return quotas.record_connection(host) if quotas.has_addresses else 0


def read_header(frame: Buffer, apis: Mapping[int, ApiSpec]) -> RequestHeader:
    """Read a request header; the tagged fields of v2 are skipped.

    :raises RequestRejectedError: If the frame is too short or the client id is not text.
    """
    try:
        api_key, api_version, correlation_id, client_id_bytes = _unpack_header_start(frame)
        client_id, position = None, _HEADER_START.size
        if client_id_bytes >= 0:
            position += client_id_bytes
            if position > len(frame):
                raise primitives.Truncated(client_id_bytes, len(frame) - _HEADER_START.size)
            client_id = str(frame[_HEADER_START.size : position], "utf-8")
        spec = apis.get(api_key)
        if spec is not None and api_version >= spec.first_flexible_version:
            position = primitives.skip_tagged_fields(frame, position) if frame[position] else position + 1
    except (ValueError, IndexError, struct.error) as error:
        text = f"a request header cannot be read: {error}"
        raise RequestRejectedError(text) from error
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def _may_be_large(spec: ApiSpec, frame: Buffer) -> bool:
    """Return whether a request may have too many elements for one turn. Handlers of records split their work
    themselves.
    """
    return len(frame) >= LARGE_REQUEST_BYTES and not spec.carries_records


def _decoded(context: RequestContext, frame: memoryview, position: int) -> Message:
    """Decode a request whose fast path failed.

    :raises RequestRejectedError: If it cannot be read.
    """
    try:
        return decode(context.api.request, context.api_version, frame, position, REQUEST_ELEMENTS_MAX)
    except DecodeError as error:
        raise RequestRejectedError(str(error)) from error


def _close_if_unanswered(context: RequestContext, request: Message) -> bool:
    """Close the connection if that is the only response to an error, as with acks=0; return whether it is."""
    is_unanswered = context.api.is_unanswered
    if is_unanswered is None or not is_unanswered(request):
        return False
    context.close_after = True
    return True


async def _encoded(context: RequestContext, response: Message | EncodedResponse) -> list[Buffer]:
    if isinstance(response, Message) and has_more_elements(response, LARGE_RESPONSE_ELEMENTS):
        return await context.broker.worker.call(encode_response, context, response)
    return encode_response(context, response)


def encode_response(context: RequestContext, response: Message | EncodedResponse) -> list[Buffer]:
    """Return size, header and body of a response; record data is not copied."""
    if context.throttle_ms:
        response = _throttled(context, response)
    # Response header v1 ends with tagged fields, of which we send none (KIP-482); ApiVersions stays at v0 (KIP-511).
    is_flexible = (
        context.api_version >= context.api.first_flexible_version and not context.api.negotiates_versions
    )
    if isinstance(response, EncodedResponse):
        body, _, rest = response
        size_bytes = len(body) + sum(map(len, rest)) if rest else len(body)
        if is_flexible:
            start = _pack_flexible_start(size_bytes + 5, context.correlation_id, 0)
        else:
            start = _pack_start(size_bytes + 4, context.correlation_id)
        return [start + body, *rest] if len(body) <= JOINED_BYTES_MAX else [start, body, *rest]
    out = bytearray(_FRAME_START_BYTES)
    if is_flexible:
        out.append(0)
    parts = encode_parts(response, context.api_version, out)
    _pack_start_into(out, 0, sum(map(len, parts)) - 4, context.correlation_id)
    return parts


def _throttled(context: RequestContext, response: Message | EncodedResponse) -> Message | EncodedResponse:
    """Return the response with its throttle time, if the version has a field for it."""
    if isinstance(response, EncodedResponse):
        at = response.throttle_position
        if at is None:
            return response
        throttle = context.throttle_ms.to_bytes(4, "big")
        return response._replace(body=response.body[:at] + throttle + response.body[at + 4 :])
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = context.throttle_ms
    return response
