"""Faults to inject: errors, delays and closed connections in place of responses."""

import asyncio
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from barnabas.api.context import RequestContext
from barnabas.api.dispatch import Response
from barnabas.api.registry import ApiSpec
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message, Struct

#: The client id of `EmbeddedBroker`'s own calls, which faults do not affect.
OWN_CLIENT_ID = "barnabas-testing"

_TOPIC_FIELDS = frozenset({"topic", "name", "topic_name", "topic_names", "resource_name"})


class Fault:
    """A fault for the next requests of one API, made by `EmbeddedBroker.fail_next` and similar methods.

    `times_left` counts down with each affected request.
    """

    def __init__(self, api_key: int, times: int, topic: str | None) -> None:
        if times < 1:
            message = f"times={times}: it must be at least 1"
            raise ValueError(message)
        self.api_key = api_key
        self.topic = topic
        self.times_left = times
        self.struck_count = 0

    @property
    def is_over(self) -> bool:
        return self.times_left == 0

    def cancel(self) -> None:
        self.times_left = 0

    def matches(self, context: RequestContext, request: Message) -> bool:
        """Whether it affects this request."""
        if not self.times_left or context.api.api_key != self.api_key:
            return False
        return self.topic is None or self.topic in topics_of(context, request)

    async def trigger(self, context: RequestContext, request: Message) -> Response:
        """Apply the fault in place of the handler."""
        raise NotImplementedError


class ErrorFault(Fault):
    """An error response to a request that is not executed."""

    def __init__(self, api_key: int, times: int, topic: str | None, code: ErrorCode) -> None:
        super().__init__(api_key, times, topic)
        self.code = code

    async def trigger(self, context: RequestContext, request: Message) -> Response:
        """Return an error for every part of the request."""
        raise KafkaError(self.code, "This error was injected by a test.")


class Delay(Fault):
    """A late response, and with it later responses of the connection."""

    def __init__(self, api_key: int, times: int, topic: str | None, delay_ms: int) -> None:
        super().__init__(api_key, times, topic)
        self.delay_ms = delay_ms

    async def trigger(self, context: RequestContext, request: Message) -> Response:
        """Delay the response."""
        response: Response = await context.api.handle(context, request)
        await asyncio.sleep(self.delay_ms / 1000)
        return response


class Drop(Fault):
    """A closed connection instead of a response, before or after the request is executed."""

    def __init__(self, api_key: int, times: int, topic: str | None, handled: bool) -> None:
        super().__init__(api_key, times, topic)
        self.handled = handled

    async def trigger(self, context: RequestContext, request: Message) -> Response:
        """Close without a response."""
        if self.handled:
            await context.api.handle(context, request)
        context.close_after = True
        return None


class Faults:
    """All faults of one broker: the interceptor of its dispatcher.

    A test's thread adds faults while the broker's thread reads them, so the list is replaced, never changed.
    """

    def __init__(self) -> None:
        self._pending: tuple[Fault, ...] = ()

    @property
    def is_empty(self) -> bool:
        return all(fault.is_over for fault in self._pending)

    def add(self, fault: Fault) -> None:
        """Add a fault, effective from the next request on; the oldest matching fault applies."""
        self._pending = (*(pending for pending in self._pending if not pending.is_over), fault)

    def clear(self) -> None:
        for fault in self._pending:
            fault.cancel()
        self._pending = ()

    async def intercept(self, context: RequestContext, request: Message) -> Response:
        """Apply a matching fault, or pass the request on."""
        fault = None if context.client_id == OWN_CLIENT_ID else self._find(context, request)
        if fault is None:
            passed: Response = await context.api.handle(context, request)
            return passed
        fault.times_left -= 1
        fault.struck_count += 1
        return await fault.trigger(context, request)

    def _find(self, context: RequestContext, request: Message) -> Fault | None:
        return next((fault for fault in self._pending if fault.matches(context, request)), None)


def topics_of(context: RequestContext, request: Message) -> set[str]:
    """Return the topics of a request, found by name, id or fetch session."""
    names = context.broker.image.topic_names
    session = context.broker.fetch_sessions.get(getattr(request, "session_id", 0))
    targets = session.targets.values() if session else ()
    names_and_ids = [value for value in _topic_values(request) if value]
    names_and_ids += [target.topic or target.topic_id for target in targets]
    return {value if isinstance(value, str) else names.get(value, "") for value in names_and_ids}


def _topic_values(struct: Struct) -> Iterator[str | bytes | None]:
    """Yield every topic name and topic id at any depth of a message."""
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        if field.name == "topic_id" or (field.name in _TOPIC_FIELDS and isinstance(value, str)):
            yield value
        elif isinstance(value, Struct):
            yield from _topic_values(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Struct):
                    yield from _topic_values(item)
                elif field.name in _TOPIC_FIELDS:
                    yield item


def api_key_of(api: str | int, served: Mapping[int, ApiSpec]) -> int:
    """Return the key of an API given by name ("Produce", in any case) or key.

    :raises ValueError: For an API that is not served; suggests the nearest name.
    """
    keys = {spec.name.lower(): key for key, spec in served.items()}
    if isinstance(api, str) and api.lower() in keys:
        return keys[api.lower()]
    if isinstance(api, int) and api in served:
        return api
    near = get_close_matches(str(api).lower(), keys, n=1, cutoff=0.5)
    hint = f"; did you mean {served[keys[near[0]]].name}?" if near else ""
    message = f"unknown API {api!r}: expected a name such as 'Produce' or a key such as 0{hint}"
    raise ValueError(message)


def error_code_of(error: ErrorCode | str | int) -> ErrorCode:
    """Return the code of an error given by name, number or as a code.

    :raises ValueError: For an unknown error, and for NONE.
    """
    try:
        code = ErrorCode[error.upper()] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        near = get_close_matches(str(error).upper(), ErrorCode.__members__, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        message = (
            f"unknown error {error!r}: expected a name such as 'NOT_LEADER_OR_FOLLOWER' or a number{hint}"
        )
        raise ValueError(message) from None
    if code is ErrorCode.NONE:
        message = "NONE is not an error: choose an error code"
        raise ValueError(message)
    return code
