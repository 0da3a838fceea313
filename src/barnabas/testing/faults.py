"""Faults to inject: errors, delays and lost connections in place of what a broker would answer."""

import asyncio
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from barnabas.api.context import RequestContext
from barnabas.api.dispatch import Response
from barnabas.api.registry import ApiSpec
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message, Struct

#: The client id of `EmbeddedBroker`'s own calls, which no fault strikes.
OWN_CLIENT_ID = "barnabas-testing"

_TOPIC_FIELDS = frozenset({"topic", "name", "topic_name", "topic_names", "resource_name"})


class Fault:
    """What befalls the next requests of one API. Made by `EmbeddedBroker`'s `fail_next` and its like.

    `times_left` counts down with each request that is struck; 0 means that the fault is over.
    """

    def __init__(self, api_key: int, times: int, topic: str | None) -> None:
        if times < 1:
            message = f"times={times}: a fault strikes at least once"
            raise ValueError(message)
        self.api_key = api_key
        self.topic = topic
        self.times_left = times
        self.struck_count = 0

    @property
    def is_over(self) -> bool:
        """Whether the fault has been used up."""
        return self.times_left == 0

    def cancel(self) -> None:
        """Strike no more."""
        self.times_left = 0

    def matches(self, context: RequestContext, request: Message) -> bool:
        """Whether it is for this request."""
        if not self.times_left or context.api.api_key != self.api_key:
            return False
        return self.topic is None or self.topic in topics_of(context, request)

    async def trigger(self, context: RequestContext, request: Message) -> Response:
        """Do it, in the handler's place."""
        raise NotImplementedError


class ErrorFault(Fault):
    """The request is answered with an error and does nothing."""

    def __init__(self, api_key: int, times: int, topic: str | None, code: ErrorCode) -> None:
        super().__init__(api_key, times, topic)
        self.code = code

    async def trigger(self, context: RequestContext, request: Message) -> Response:
        """Refuse every part of the request."""
        raise KafkaError(self.code, "This error was asked for by a test.")


class Delay(Fault):
    """The request does its work; the answer comes late, and what follows it on its connection with it."""

    def __init__(self, api_key: int, times: int, topic: str | None, delay_ms: int) -> None:
        super().__init__(api_key, times, topic)
        self.delay_ms = delay_ms

    async def trigger(self, context: RequestContext, request: Message) -> Response:
        """Hold the answer back."""
        response: Response = await context.api.handle(context, request)
        await asyncio.sleep(self.delay_ms / 1000)
        return response


class Drop(Fault):
    """The connection closes instead of an answer, before the request has done its work or after it."""

    def __init__(self, api_key: int, times: int, topic: str | None, handled: bool) -> None:
        super().__init__(api_key, times, topic)
        self.handled = handled

    async def trigger(self, context: RequestContext, request: Message) -> Response:
        """Answer nothing and close."""
        if self.handled:
            await context.api.handle(context, request)
        context.close_after = True
        return None


class Faults:
    """All faults of one broker: the interceptor of its dispatcher.

    A test's thread adds to it while the broker's looks through it: the list is replaced, never changed.
    """

    def __init__(self) -> None:
        self._pending: tuple[Fault, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing left to strike."""
        return all(fault.is_over for fault in self._pending)

    def add(self, fault: Fault) -> None:
        """Strike from the next request on; of several faults for one request the oldest strikes."""
        self._pending = (*(each for each in self._pending if not each.is_over), fault)

    def clear(self) -> None:
        """Strike no more."""
        for fault in self._pending:
            fault.cancel()
        self._pending = ()

    async def intercept(self, context: RequestContext, request: Message) -> Response:
        """Let a fault strike if there is one for this request, else let it pass."""
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
    """The names of the topics that a request is about, by name, by id or by its fetch session."""
    names = context.node.image.topic_names
    session = context.node.fetch_sessions.get(getattr(request, "session_id", 0))
    targets = session.targets.values() if session else ()
    found = [value for value in _topic_values(request) if value]
    found += [target.topic or target.topic_id for target in targets]
    return {value if isinstance(value, str) else names.get(value, "") for value in found}


def _topic_values(struct: Struct) -> Iterator[str | bytes | None]:
    """Every topic name and topic id at any depth of a message."""
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
    """The key of an API given by its name ("Produce", in any case) or by its key.

    :raises ValueError: For one that is not served, with the nearest name.
    """
    keys = {spec.name.lower(): key for key, spec in served.items()}
    if isinstance(api, str) and api.lower() in keys:
        return keys[api.lower()]
    if isinstance(api, int) and api in served:
        return api
    near = get_close_matches(str(api).lower(), keys, n=1, cutoff=0.5)
    hint = f"; did you mean {served[keys[near[0]]].name}?" if near else ""
    message = f"{api!r} is no API of this broker: names such as 'Produce' and keys such as 0 are{hint}"
    raise ValueError(message)


def error_code_of(error: ErrorCode | str | int) -> ErrorCode:
    """An error given by its name, its number or itself.

    :raises ValueError: For one that there is not, and for NONE.
    """
    try:
        code = ErrorCode[error.upper()] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        near = get_close_matches(str(error).upper(), ErrorCode.__members__, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        message = f"{error!r} is no Kafka error: names such as 'NOT_LEADER_OR_FOLLOWER' and numbers are{hint}"
        raise ValueError(message) from None
    if code is ErrorCode.NONE:
        message = "NONE is no error: choose one to fail with"
        raise ValueError(message)
    return code
