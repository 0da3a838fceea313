"""What can go wrong between this client and a broker, said so that a person knows what to try next."""

import re

from barnabas.client.core.address import BrokerAddress
from barnabas.wire.errors import ErrorCode, KafkaError

#: How Apache Kafka's brokers refuse what concerns the cluster: with their request as Java prints it.
_REQUEST_PRINTED = re.compile(r"Request Request\(.*\) needs (\w+) permission\.", re.DOTALL)


class BrokerConnectionError(ConnectionError):
    """No answer can come over this connection; the request may be tried again on a new one."""

    def __init__(self, address: BrokerAddress, message: str) -> None:
        super().__init__(message)
        self.address = address


class BrokerUnreachable(BrokerConnectionError):
    """No connection could be opened."""


class ConnectionLost(BrokerConnectionError):
    """The connection ended while answers were awaited."""


class NotKafka(BrokerConnectionError):
    """The other side sent bytes that are not Kafka's protocol."""


class RequestTimedOut(BrokerConnectionError):
    """No answer came in time; whether the broker acted is unknown."""


def error_for(code: int, message: str | None = None) -> KafkaError | None:
    """The error that a response's `error_code` and `error_message` stand for; None for code 0."""
    if code == 0:
        return None
    try:
        return KafkaError(
            ErrorCode(code), _REQUEST_PRINTED.sub(r"\1 permission on it is needed", message or "")
        )
    except ValueError:
        text = f"error code {code}, unknown to this client: {message or 'no message'}"
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def check(code: int, message: str | None = None) -> None:
    """Raise what `error_for` gives.

    :raises KafkaError: When `code` is not 0.
    """
    error = error_for(code, message)
    if error is not None:
        raise error


def is_retriable(error: Exception) -> bool:
    """Whether the same call may succeed later: a lost connection, or an error code that says so."""
    if isinstance(error, KafkaError):
        return error.code.retriable
    return isinstance(error, ConnectionError) and not isinstance(error, NotKafka)
