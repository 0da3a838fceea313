"""A client of etcd's JSON gateway (`/v3/...`): several endpoints, a user's token, and errors by what they mean."""

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

from barnabas.metadata.store import OutcomeUnknown, StoreError
from barnabas.stores.etcd_http import EtcdEndpoint, HttpConnection, NoAnswer, NotSent
from barnabas.telemetry.logs import get_logger

CONNECT_TIMEOUT_S = 2.0

#: How long one member may take to answer. A new leader of etcd is elected in 1 to 2 s.
ANSWER_TIMEOUT_S = 3.0

#: How much longer for each byte of the request: a transaction of 10,000 keys (3 MB) takes more than a second.
ANSWER_TIMEOUT_S_PER_BYTE = 1e-6

#: How long endpoints are tried in turn, as long as nothing was changed, and the pause after each round.
RETRY_TIMEOUT_S = 6.0
RETRY_PAUSE_S = 0.2

#: Number of requests at a time, and of idle connections that are kept.
CONCURRENT_COUNT_MAX = 16

# Codes of gRPC.
_INVALID_ARGUMENT, _PERMISSION_DENIED, _RESOURCE_EXHAUSTED, _OUT_OF_RANGE = 3, 7, 8, 11
_FAILED_PRECONDITION, _UNAUTHENTICATED, _NOT_FOUND = 9, 16, 5

#: With these codes etcd has checked the request, and refused it; but see `EtcdStore` for a lack of space. With others,
#: the outcome is unknown.
_REFUSALS = frozenset(
    {
        _INVALID_ARGUMENT,
        _PERMISSION_DENIED,
        _RESOURCE_EXHAUSTED,
        _OUT_OF_RANGE,
        _FAILED_PRECONDITION,
        _UNAUTHENTICATED,
        _NOT_FOUND,
    }
)

#: Parts of messages with which a member says that it has not even begun, so that another one may be asked.
_NOT_BEGUN = ("no leader", "raft proposal dropped", "too many requests", "not capable", "server not ready")
_STALE_TOKEN = ("invalid auth token", "revision of auth store is old")

#: The beginning of the answer to a client with a CN, which would be etcd's user if the gateway could pass it on.
_COMMON_NAME = b"CommonName of client"
_NO_COMMON_NAME = "if etcd has users, the certificate that brokers present to it must have no CN"

_log = get_logger("barnabas.stores")


class Refused(Exception):
    """etcd has refused a request, with a code of gRPC. Unless it lacks space, nothing was changed."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def is_not_found(self) -> bool:
        return self.code == _NOT_FOUND

    @property
    def is_compacted(self) -> bool:
        return "has been compacted" in self.message

    @property
    def is_stale_token(self) -> bool:
        return any(part in self.message for part in _STALE_TOKEN)


class Credentials(NamedTuple):
    user: str
    password: str


class Gateway:
    """Sends requests to one of several endpoints, and moves to the next one when it fails."""

    def __init__(
        self,
        endpoints: tuple[EtcdEndpoint, ...],
        tls: Callable[[], ssl.SSLContext] | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """:param endpoints: The first one that answers is used until it fails.
        :param tls: Returns the context of new connections. After it has changed, no request is sent on an older one.
        """
        self.endpoints = endpoints
        self._tls = tls
        self._credentials = credentials
        self._current = 0
        self._idle: list[tuple[EtcdEndpoint, HttpConnection]] = []
        self._slots = asyncio.Semaphore(CONCURRENT_COUNT_MAX)
        self._token: str | None = None
        self._authenticating = {endpoint: asyncio.Lock() for endpoint in endpoints}
        self.requests_count = 0
        self.failovers_count = 0

    @property
    def endpoint(self) -> EtcdEndpoint:
        """The endpoint that is used at present."""
        return self.endpoints[self._current]

    def leave(self, endpoint: EtcdEndpoint) -> None:
        """Use the next endpoint, because this one has failed."""
        for each, connection in self._idle:
            if each == endpoint:
                connection.close()
        self._idle = [idle for idle in self._idle if idle[0] != endpoint]
        if endpoint == self.endpoint and len(self.endpoints) > 1:
            self._current = (self._current + 1) % len(self.endpoints)
            self.failovers_count += 1
            _log.warning("using another endpoint of etcd", failed=str(endpoint), next=str(self.endpoint))

    async def call(
        self, path: str, message: Mapping[str, Any], *, is_repeatable: bool = True, is_urgent: bool = False
    ) -> dict[str, Any]:
        """Send a request, and return the answer.

        :param is_repeatable: Whether it may be sent again although it may have been carried out.
        :param is_urgent: Whether it does not wait for others that have not been answered yet.
        :raises Refused: If etcd refuses it.
        :raises OutcomeUnknown: If it is not repeatable, and was sent to a member that did not answer.
        :raises StoreError: If no member answers.
        """
        # Requests of clients begin outside of a task (`base.eager`), where asyncio has no timeouts.
        return await asyncio.create_task(
            self._call(path, message, is_repeatable=is_repeatable, is_urgent=is_urgent)
        )

    async def _call(
        self, path: str, message: Mapping[str, Any], *, is_repeatable: bool, is_urgent: bool
    ) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETRY_TIMEOUT_S
        reasons: dict[EtcdEndpoint, Exception] = {}
        while True:
            for _ in self.endpoints:
                async with nullcontext() if is_urgent else self._slots:
                    endpoint = self.endpoint  # the present one, although there was a wait
                    try:
                        return await self._send(endpoint, path, message, until_left=True)
                    except NotSent as error:
                        reasons[endpoint] = error
                    except NoAnswer as error:
                        reasons[endpoint] = error
                        if not is_repeatable:
                            self.leave(endpoint)
                            raise OutcomeUnknown(f"{endpoint}: {error}") from error
                    self.leave(endpoint)
            if loop.time() > deadline:
                why = "; ".join(f"{each}: {error}" for each, error in reasons.items())
                raise StoreError(f"no endpoint of etcd answers ({why})")
            await asyncio.sleep(RETRY_PAUSE_S)

    async def call_at(self, endpoint: EtcdEndpoint, path: str, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request to this endpoint alone.

        :raises Refused: If etcd refuses it.
        :raises NotSent: If nothing was changed.
        :raises NoAnswer: If the outcome is unknown.
        """
        async with self._slots:
            return await self._send(endpoint, path, message, until_left=False)

    async def _send(
        self, endpoint: EtcdEndpoint, path: str, message: Mapping[str, Any], *, until_left: bool
    ) -> dict[str, Any]:
        """:param until_left: Whether the request is not sent if the endpoint is left while it waits for a login."""
        token = await self._authenticate(endpoint, until_left=until_left)
        try:
            return await self._ask(endpoint, path, message, token)
        except Refused as refused:
            if not refused.is_stale_token or token is None:
                raise
        self.drop_token(token)
        token = await self._authenticate(endpoint, until_left=until_left)
        return await self._ask(endpoint, path, message, token)

    async def open_stream(
        self, endpoint: EtcdEndpoint, path: str, message: Mapping[str, Any]
    ) -> HttpConnection:
        """Return a connection whose lines are the answers to one request.

        :raises NotSent: If there is no connection.
        :raises NoAnswer: If there is no answer.
        """
        token = await self._authenticate(endpoint, until_left=False)
        connection = await HttpConnection.open(endpoint, self._context(), CONNECT_TIMEOUT_S)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await connection.start_stream(path, _encode(message), token)
        except TimeoutError:
            connection.close()
            raise NoAnswer(f"no answer within {ANSWER_TIMEOUT_S:g} s") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def drop_token(self, token: str | None = None) -> None:
        """Authenticate again before the next request; with a token, only if it is the present one."""
        if token is None or token == self._token:
            self._token = None

    def close(self) -> None:
        for _, connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _authenticate(self, endpoint: EtcdEndpoint, *, until_left: bool) -> str | None:
        """Return the token of the user; None without a user. One login at a time is sent to each endpoint.

        :raises NotSent: If the endpoint does not answer the login, or was left before it was this request's turn.
        """
        if self._credentials is None or self._token is not None:
            return self._token
        async with self._authenticating[endpoint]:
            if until_left and endpoint != self.endpoint:
                raise NotSent("another endpoint is used now")
            if self._token is not None:
                return self._token
            login = {"name": self._credentials.user, "password": self._credentials.password}
            try:
                self._token = str((await self._ask(endpoint, "/v3/auth/authenticate", login, None))["token"])
            except NoAnswer as error:
                raise NotSent(f"no login: {error}") from error
            return self._token

    async def _ask(
        self, endpoint: EtcdEndpoint, path: str, message: Mapping[str, Any], token: str | None
    ) -> dict[str, Any]:
        request = _encode(message)
        connection = await self._connection(endpoint)
        self.requests_count += 1
        timeout_s = ANSWER_TIMEOUT_S + len(request) * ANSWER_TIMEOUT_S_PER_BYTE
        try:
            async with asyncio.timeout(timeout_s):
                status, body = await connection.post(path, request, token)
        except TimeoutError:
            connection.close()
            raise NoAnswer(f"no answer within {timeout_s:.1f} s") from None
        except (
            BaseException
        ):  # also if cancelled: an answer that comes late must not be taken for the next one
            connection.close()
            raise
        if connection.is_reusable and len(self._idle) < CONCURRENT_COUNT_MAX:
            self._idle.append((endpoint, connection))
        else:
            connection.close()
        return decode_answer(status, body)

    async def _connection(self, endpoint: EtcdEndpoint) -> HttpConnection:
        tls = self._context()
        for at, (each, connection) in enumerate(self._idle):
            if each == endpoint:
                del self._idle[at]
                if connection.is_reusable and connection.tls is tls:
                    return connection
                connection.close()
                return await self._connection(endpoint)
        return await HttpConnection.open(endpoint, tls, CONNECT_TIMEOUT_S)

    def _context(self) -> ssl.SSLContext | None:
        return None if self._tls is None else self._tls()


def _encode(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def decode_answer(status: int, body: bytes) -> dict[str, Any]:
    """Return the message of an answer, of a stream the first one.

    :raises Refused: If it is an error of etcd that has changed nothing.
    :raises NotSent: If another member may be asked.
    :raises NoAnswer: If the outcome is unknown.
    """
    try:
        response = json.loads(body)
    except ValueError:
        if body.startswith(_COMMON_NAME):
            raise Refused(_UNAUTHENTICATED, _NO_COMMON_NAME) from None
        raise NoAnswer(f"HTTP status {status}, not an answer of etcd's gateway: {body[:200]!r}") from None
    if not isinstance(response, dict):
        raise NoAnswer(f"not an answer of etcd's gateway: {body[:200]!r}")
    if isinstance(result := response.get("result"), dict):
        return result
    error = response.get("error", response)
    error = response if isinstance(error, str) else error
    if "code" not in error and "grpc_code" not in error:
        return response
    code = int(error.get("grpc_code") or error.get("code") or 0)
    text = str(error.get("message") or error.get("error") or "no reason given")
    if any(part in text for part in _NOT_BEGUN):
        raise NotSent(text)
    if code in _REFUSALS or any(part in text for part in _STALE_TOKEN):
        raise Refused(code, text)
    raise NoAnswer(text)
