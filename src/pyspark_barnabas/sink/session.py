"""A cluster for blocking code, connected on its own event loop for the time of a task or commit."""

from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.loop_thread import LoopThread
from barnabas.client.core.metadata import TopicInfo
from barnabas.client.core.retry import Retry
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.sink.errors import SinkError
from pyspark_barnabas.sink.options import SinkOptions

ResultT = TypeVar("ResultT")

#: A topic that was just created takes a moment to be known to all brokers.
_TOPIC_TIMEOUT_MS = 10_000


class SinkClient:
    """A client; use as a context manager."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self._loop = LoopThread("barnabas-sink", uvloop.new_event_loop())
        connection = options.connection
        self.cluster = ClusterClient(
            connection.bootstrap,
            client_id=connection.client_id,
            request_timeout_ms=connection.request_timeout_ms,
            login=connection.login,
            tls=connection.tls,
            retry=Retry(timeout_ms=options.delivery_timeout_ms),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.run(self.cluster.close())
        self._loop.stop()

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run `work` on the loop and wait for its result."""
        return self._loop.run(work)

    def start(self, work: Coroutine[Any, Any, ResultT]) -> Future[ResultT]:
        """Begin `work` on the loop; return its result as a future."""
        return self._loop.start(work)

    def topic(self, name: str) -> TopicInfo:
        """Return the topic of that name; the broker creates it if that is allowed (`auto.create.topics.enable`).

        :raises SinkError: When it does not exist.
        """

        async def attempt() -> TopicInfo:
            return await self.cluster.topic(name, auto_create=True)

        known = self.cluster.cached_topic(name)
        try:
            return known or self.run(self.cluster.retrying(attempt, _TOPIC_TIMEOUT_MS))
        except KafkaError as error:
            message = f"topic '{name}' cannot be written to: {error}"
            raise SinkError(message) from error
