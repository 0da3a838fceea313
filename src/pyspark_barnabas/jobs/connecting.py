"""A client for the driver of a job, on the options of the source."""

from barnabas.client.blocking import Client
from barnabas.client.retry import Retry
from pyspark_barnabas.options import ConnectionOptions


def connected(options: ConnectionOptions, request_timeout_ms: int | None = None) -> Client:
    """A client that is connected; to be closed.

    :raises BrokerConnectionError: When none of the brokers answers.
    """
    return Client(
        options.bootstrap,
        client_id=options.client_id,
        login=options.login,
        request_timeout_ms=request_timeout_ms or options.request_timeout_ms,
        retry=Retry(timeout_ms=options.request_timeout_ms),
    )
