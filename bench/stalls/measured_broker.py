"""A broker in this process whose event loop measures itself, with a configurable amount of state."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.client.core.loop_thread import LoopThread
from barnabas.config.load import load_broker_config
from barnabas.server.broker import start_broker
from barnabas.server.garbage import calm_collector
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.schema import Message
from bench.stalls.client import FrameClient
from bench.stalls.forms import APIS, frame_of
from bench.stalls.measured_loop import Hold, MeasuredLoop

#: The client is a superuser, and its requests are authorized all the same.
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "node.id": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

AT_ONCE_COUNT = 100


def state(topics_count: int) -> list[Message]:
    """Build requests that create topics `topic-NUMBER`, and an ACL for each."""
    requests: list[Message] = []
    for start in range(0, topics_count, AT_ONCE_COUNT):
        names = [f"topic-{number}" for number in range(start, min(start + AT_ONCE_COUNT, topics_count))]
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        requests.append(CreateTopicsRequest(topics=topics, timeout_ms=60_000))
        acls = [AclCreation(2, name, 3, "User:a", "*", 3, 3) for name in names]
        requests.append(CreateAclsRequest(creations=acls))
    return requests


class MeasuredBroker:
    """Serves on a free port of this machine until the block ends."""

    def __init__(self, data: Path, topics_count: int) -> None:
        self._loop = MeasuredLoop()
        self._loop.measure_callbacks()
        self._thread = LoopThread("measured-broker", self._loop)
        settings = SETTINGS | {"log.dirs": str(data)}
        config = load_broker_config(settings=[f"{key}={value}" for key, value in settings.items()]).config
        self.server = self._thread.run(start_broker(config))
        self._topics_count = topics_count
        self._calm = ExitStack()

    def __enter__(self) -> Self:
        _, host, port = self.server.addresses[0]
        self.bootstrap = f"{host}:{port}"
        for request in state(self._topics_count):
            self.ask(request)
        self._calm.enter_context(calm_collector(self._loop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._calm.close()
        self._thread.run(self.server.stop())
        self._thread.stop()

    def ask(self, request: Message) -> int | None:
        """Return the size of the response to a request."""
        spec = APIS[request.API_KEY]
        with FrameClient(self.bootstrap) as client:
            return client.ask(frame_of(spec, request, spec.versions.last, 1))

    def hold_of(self, data: bytes, answers_count: int = 1) -> Hold:
        """Send frames with their sizes in one write; return how long the loop was held until they were answered."""
        self.ask(ApiVersionsRequest())
        self.take_longest()
        with FrameClient(self.bootstrap) as client:
            client.send_all(data)
            for _ in range(answers_count):
                if client.receive() is None:
                    break
        self.ask(ApiVersionsRequest())
        return self.take_longest()

    def take_longest(self) -> Hold:
        """Return how long the loop was held since the last call."""
        return self._loop.take_longest()
