"""One connection to one broker: requests are pipelined, each at the highest version that both sides support."""

import asyncio
import itertools
import ssl
import struct
from collections.abc import Mapping
from typing import Any, Self

from barnabas import __version__
from barnabas.base.buffers import Buffer
from barnabas.base.os_errors import reason_of
from barnabas.client.auth.login import log_in
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import (
    BrokerConnectionError,
    BrokerUnreachable,
    ConnectionLost,
    NotKafka,
    RequestTimedOut,
    check,
)
from barnabas.client.core.frame_protocol import FrameMemory, Frames
from barnabas.client.core.request_codec import api_name, decode_response, encode_request
from barnabas.tls.failures import server_failure_reason
from barnabas.wire.codec import DecodeError
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.schema import Message, Versions

CONNECT_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_MS = 30_000
_CORRELATION_ID_LIMIT = 1 << 31
#: How long a broker may take to read what is still to be written when a connection is closed.
_LAST_WRITES_MS = 1_000
_INT32 = struct.Struct(">i")
#: The client authenticates again after this share of a session's lifetime.
_RENEWAL_SHARE = 0.85

#: A request without a response yet: its type, its version, and the future of its response.
_Pending = tuple[type[Message], int, asyncio.Future[Any]]


class BrokerConnection:
    """An open connection, made by `BrokerConnection.open`. Unusable after one of its requests has timed out."""

    def __init__(
        self,
        address: BrokerAddress,
        *,
        client_id: str,
        request_timeout_ms: int,
        login: SaslLogin | None = None,
        memory: FrameMemory | None = None,
    ) -> None:
        self.address = address
        self.versions: Mapping[int, Versions] = {}  #: API key -> versions of the broker
        self._frames = Frames(self._answer, self._refuse_frame, self._ended, memory)
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._login = login
        self._renewing = asyncio.Lock()
        self._renew_s: float | None = None  #: time of the next authentication, on the loop's clock
        self._correlation_ids = itertools.count()
        self._pending: dict[int, _Pending] = {}
        self._failure: BrokerConnectionError | None = None
        self.failed_s: float | None = None  #: when it became unusable, on the loop's clock
        self._over = asyncio.Event()  #: set when the transport is closed

    @classmethod
    async def open(
        cls,
        address: BrokerAddress,
        *,
        client_id: str = "barnabas",
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        login: SaslLogin | None = None,
        tls: ssl.SSLContext | None = None,
        memory: FrameMemory | None = None,
    ) -> Self:
        """Connect, ask for the broker's API versions, and log in if `login` is given.

        :param tls: Encrypts the connection, and verifies the broker's certificate; None for a connection without TLS.
        :param memory: Memory for large responses, if it is to outlive the connection.
        :raises BrokerConnectionError: When the connection is refused, the certificate is not trusted, or the other side
            does not speak Kafka's protocol.
        :raises KafkaError: When the login fails.
        """
        connection = cls(
            address,
            client_id=client_id,
            request_timeout_ms=request_timeout_ms,
            login=login,
            memory=memory,
        )
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(connect_timeout_ms / 1000):
                await loop.create_connection(lambda: connection._frames, *address, ssl=tls)
        except ssl.SSLError as error:
            message = f"no connection to a broker at {address}: {server_failure_reason(error)}"
            raise BrokerUnreachable(address, message) from error
        except OSError as error:
            why = reason_of(error)
            if isinstance(error, TimeoutError):
                why = f"no answer within {connect_timeout_ms} ms"
            elif isinstance(error, ConnectionResetError) and tls is not None:
                why = "it has ended the TLS handshake: is it a listener with TLS?"
            raise BrokerUnreachable(address, f"no connection to a broker at {address}: {why}") from error
        try:
            await connection._negotiate()
            await connection._log_in()
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        """Whether requests can still be sent."""
        return self._failure is None

    async def send(
        self, request: Message, *, version_max: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        """Send a request and return its response.

        :raises KafkaError: UNSUPPORTED_VERSION when no version is supported by both sides.
        :raises BrokerConnectionError: When no response can come any more.
        """
        if self._renew_s is not None:
            await self._renew()
        return await self._send(request, version_max=version_max, timeout_ms=timeout_ms)

    async def _send(
        self, request: Message, *, version_max: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        version = self.version_of(type(request), version_max)
        timeout_ms = self._request_timeout_ms if timeout_ms is None else timeout_ms
        response = self._write(request, version)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await response
        except TimeoutError as error:
            what = f"{self.address} did not answer {api_name(type(request))} within {timeout_ms} ms"
            timed_out = RequestTimedOut(self.address, f"{what}; under load it may need longer")
            self._fail(timed_out)
            raise timed_out from error

    async def send_unanswered(self, request: Message, *, version_max: int | None = None) -> None:
        """Send a request that has no response: Produce with acks=0.

        :raises BrokerConnectionError: When the connection is lost.
        """
        if self._renew_s is not None:
            await self._renew()
        self._transmit(request, self.version_of(type(request), version_max))
        await self._frames.drain()
        if self._failure is not None:
            raise self._failure

    def version_of(self, request: type[Message], version_max: int | None = None) -> int:
        """Return the highest version of `request` that both sides support, at most `version_max`.

        :raises KafkaError: UNSUPPORTED_VERSION when there is none.
        """
        ours = request.VERSIONS
        theirs = self.versions.get(request.API_KEY)
        if theirs is None:
            message = f"the broker at {self.address} does not serve {api_name(request)}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        last = min(ours.last, theirs.last, ours.last if version_max is None else version_max)
        if last < max(ours.first, theirs.first):
            spoken = f"the broker at {self.address} supports {theirs.first}-{theirs.last}, "
            spoken += f"this client {ours.first}-{ours.last if version_max is None else version_max}"
            message = f"no common version of {api_name(request)}: {spoken}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        return last

    async def close(self) -> None:
        """Close; requests that wait for a response fail with ConnectionLost, those that expect none are still
        written.
        """
        self._fail(self._lost("this client closed it"))
        try:
            async with asyncio.timeout(_LAST_WRITES_MS / 1000):
                await self._over.wait()
        except TimeoutError:
            self._frames.transport.abort()

    def abort(self) -> None:
        """Close at once; requests that wait for a response fail with ConnectionLost."""
        self._fail(self._lost("this client closed it"))
        self._frames.transport.abort()

    async def _negotiate(self) -> None:
        """Send ApiVersions at our newest version, and again at the broker's newest if that is older (KIP-511)."""
        newest = ApiVersionsRequest.VERSIONS.last
        response = await self._ask_versions(newest)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = _ranges(response.api_keys).get(ApiVersionsRequest.API_KEY, Versions(0, 0))
            response = await self._ask_versions(min(newest, theirs.last))
        check(response.error_code, f"{self.address} refused ApiVersions")
        self.versions = _ranges(response.api_keys)

    async def _log_in(self) -> None:
        if self._login is None:
            return
        session_ms = await log_in(self._send, self.address, self._login)
        now_s = asyncio.get_running_loop().time()
        self._renew_s = now_s + session_ms / 1000 * _RENEWAL_SHARE if session_ms else None

    async def _renew(self) -> None:
        """Authenticate again when the session ends soon; other requests wait, because the broker accepts none in
        between (KIP-368).
        """
        async with self._renewing:
            if self._renew_s is not None and asyncio.get_running_loop().time() >= self._renew_s:
                await self._log_in()

    async def _ask_versions(self, version: int) -> ApiVersionsResponse:
        self.versions = {ApiVersionsRequest.API_KEY: Versions(version, version)}
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version=__version__)
        try:
            response: ApiVersionsResponse = await self._send(request)
        except ConnectionLost as error:
            message = f"{self.address} closed the connection without a response: is it a Kafka listener"
            message += "?" if self._frames.is_encrypted else " without TLS?"
            if isinstance(error.__cause__, ssl.SSLError):  # the broker's answer to the client certificate
                message = (
                    f"no connection to a broker at {self.address}: {server_failure_reason(error.__cause__)}"
                )
            raise ConnectionLost(self.address, message) from error
        return response

    def _write(self, request: Message, version: int) -> asyncio.Future[Any]:
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        correlation_id = self._transmit(request, version)
        self._pending[correlation_id] = (type(request), version, response)
        return response

    def _transmit(self, request: Message, version: int) -> int:
        if self._failure is not None:
            raise self._failure
        correlation_id = next(self._correlation_ids) % _CORRELATION_ID_LIMIT
        self._frames.transport.writelines(encode_request(request, version, correlation_id, self._client_id))
        return correlation_id

    def _answer(self, frame: Buffer) -> None:
        """Hand a response to the request that waits for it."""
        (correlation_id,) = _INT32.unpack_from(frame)
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            what = f"an answer with correlation id {correlation_id}, which no request has"
            self._fail(self._not_kafka(what))
            return
        request, version, response = pending
        if response.done():  # the caller was cancelled
            return
        try:
            response.set_result(decode_response(request, version, memoryview(frame)))
        except DecodeError as error:
            response.set_exception(self._not_kafka(str(error)))

    def _refuse_frame(self, size_bytes: int) -> None:
        self._fail(self._not_kafka(f"a frame of {size_bytes} bytes"))

    def _ended(self, error: Exception | None) -> None:
        lost = self._lost("the broker closed it" if error is None else str(error))
        lost.__cause__ = error
        self._fail(lost)
        self._over.set()

    def _not_kafka(self, what: str) -> NotKafka:
        return NotKafka(self.address, f"{self.address} sent {what}: it does not speak Kafka's protocol")

    def _lost(self, why: str) -> ConnectionLost:
        return ConnectionLost(self.address, f"the connection to {self.address} was lost: {why}")

    def _fail(self, failure: BrokerConnectionError) -> BrokerConnectionError:
        """End the connection because of `failure`; later failures are ignored."""
        if self._failure is None:
            self._failure = failure
            self.failed_s = asyncio.get_running_loop().time()
            self._frames.transport.close()
            for _, _, response in self._pending.values():
                if not response.done():
                    response.set_exception(failure)
            self._pending.clear()
        return self._failure


def _ranges(api_keys: list[ApiVersion]) -> dict[int, Versions]:
    return {api.api_key: Versions(api.min_version, api.max_version) for api in api_keys}
