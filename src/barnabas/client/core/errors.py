"""Errors between this client and a broker, with messages with a hint what to try next."""

import re

from barnabas.client.core.address import BrokerAddress
from barnabas.wire.errors import ErrorCode, KafkaError

#: Apache Kafka's message when it refuses an operation on the cluster: it contains the request as Java prints it.
_REQUEST_PRINTED = re.compile(r"Request Request\(.*\) needs (\w+) permission\.", re.DOTALL)


class BrokerConnectionError(ConnectionError):
    """No response can come over this connection; the request may be tried again on a new one."""

    def __init__(self, address: BrokerAddress, message: str) -> None:
        super().__init__(message)
        self.address = address


class BrokerUnreachable(BrokerConnectionError):
    """No connection could be opened."""


class ConnectionLost(BrokerConnectionError):
    """The connection ended while requests waited for responses."""


class NotKafka(BrokerConnectionError):
    """The other side sent bytes that are not Kafka's protocol."""


class RequestTimedOut(BrokerConnectionError):
    """No response came in time; whether the broker executed the request is unknown."""


class ThrottlingQuotaExceeded(KafkaError):
    """A change that was not made because of a quota, and may be tried again after the throttle time."""

    def __init__(self, message: str, throttle_time_ms: int) -> None:
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)
        self.throttle_time_ms = throttle_time_ms


def error_for(code: int, message: str | None = None, throttle_time_ms: int = 0) -> KafkaError | None:
    """Return the error of a response's `error_code` and `error_message`; None for code 0."""
    if code == 0:
        return None
    known = ErrorCode.of(code)
    if known != code:
        return KafkaError(known, f"error code {code}, unknown to this client: {message or 'no message'}")
    if known is ErrorCode.THROTTLING_QUOTA_EXCEEDED:
        return ThrottlingQuotaExceeded(message or "", throttle_time_ms)
    return KafkaError(known, _REQUEST_PRINTED.sub(r"\1 permission on it is needed", message or ""))


def check(code: int, message: str | None = None) -> None:
    """Raise the error of a response.

    :raises KafkaError: When `code` is not 0.
    """
    error = error_for(code, message)
    if error is not None:
        raise error


def is_retriable(error: Exception) -> bool:
    """Whether the same call may succeed later: after a lost connection or a retriable error code."""
    if isinstance(error, KafkaError):
        return error.code.retriable
    return isinstance(error, ConnectionError) and not isinstance(error, NotKafka)


def is_retriable_elsewhere(error: Exception) -> bool:
    """Whether a call may succeed later, perhaps at a new leader or coordinator, because the present one has left."""
    has_left = isinstance(error, KafkaError) and error.code is ErrorCode.BROKER_NOT_AVAILABLE
    return has_left or is_retriable(error)
