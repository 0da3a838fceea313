"""A real broker inside a test's process, on a free port, with data in a temporary directory."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import uvloop

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient, BlockingProducer
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.client.core.loop_thread import LoopThread
from barnabas.client.core.metadata import TopicInfo
from barnabas.client.producer.accumulator import RecordMetadata
from barnabas.config.listeners import SecurityProtocol
from barnabas.config.load import load_broker_config
from barnabas.server.broker import BrokerServer, start_broker
from barnabas.testing.faults import (
    OWN_CLIENT_ID,
    Delay,
    Drop,
    ErrorFault,
    Fault,
    Faults,
    api_key_of,
    error_code_of,
)
from barnabas.testing.logins import login_settings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.record import RecordHeaders

HOST = "127.0.0.1"
WAIT_MS = 10_000

_NOT_RUNNING = "the broker is not running: call start(), or use it in a with statement"


#: Settings for tests. The first members of a group do not wait for others: in a test all are present, and three
#: seconds are long. There is no audit, because a test may list all topics.
QUICK_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "barnabas.audit.enable": "false"}


class EmbeddedBroker:
    """A broker with `start` and `stop`, or a context manager; it can be started again.

    Every method but `start` and `stop` needs a running broker. Faults do not affect its own calls (`create_topic`,
    `produce`, `records` ...).
    """

    def __init__(
        self, settings: Mapping[str, str] | None = None, users: Mapping[str, str] | None = None
    ) -> None:
        """:param settings: Broker settings by Kafka's names, such as {"auto.create.topics.enable": "false"}.
        :param users: Passwords by name. If given, clients must log in on `bootstrap`, by PLAIN or SCRAM.
        """
        self._settings = dict(settings or {})
        self._users = dict(users or {})
        self._port = 0
        self._directory: TemporaryDirectory[str] | None = None
        self._thread: LoopThread | None = None
        self._server: BrokerServer | None = None
        self._client: BlockingClient | None = None
        self._producer: BlockingProducer | None = None
        self._faults = Faults()
        self._clock: Clock = SystemClock()

    # Starting and stopping

    def start(self) -> Self:
        """Serve on a free port.

        :raises ConfigError: For invalid settings.
        """
        if self._thread is not None:
            message = f"the broker is already running on {self.bootstrap}"
            raise RuntimeError(message)
        self._directory = TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True)
        self._thread = LoopThread("barnabas-broker", uvloop.new_event_loop())
        self._port = 0
        try:
            self._serve()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop and remove the data; does nothing if the broker is stopped."""
        try:
            self._halt(kill=False)
        finally:
            if self._thread is not None:
                self._thread.stop()
                self._thread = None
            if self._directory is not None:
                self._directory.cleanup()
                self._directory = None
            self._faults.clear()

    def restart(self, *, kill: bool = False) -> None:
        """Stop and start again on the same port with the same data; connections are closed.

        With `kill` nothing is flushed, checkpointed or marked as cleanly stopped, as if the process were killed:
        the next start recovers. Pending faults stay.
        """
        self._halt(kill=kill)
        self._serve()

    def _serve(self) -> None:
        assert self._thread is not None
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{self._port}",
            "log.dirs": str(self.directory),
            **(login_settings(HOST, self._port, self._users) if self._users else {}),
            **QUICK_SETTINGS,
            **self._settings,
        }
        loaded = load_broker_config(settings=[f"{key}={value}" for key, value in settings.items()])
        self._server = server = self._thread.run(start_broker(loaded.config, bootstrap_users=self._users))
        _, _, self._port = server.addresses[0]
        if not self._faults.is_empty:
            server.dispatcher.interceptor = self._faults.intercept

    def _halt(self, kill: bool) -> None:
        server, self._server = self._server, None
        client, self._client = self._client, None
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(flush=False)
        if client is not None:
            client.close()
        if server is not None and self._thread is not None:
            self._thread.run(server.kill() if kill else server.stop())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # Attributes

    @property
    def bootstrap(self) -> str:
        """`bootstrap.servers` for clients: host and port."""
        return f"{HOST}:{self._port}"

    @property
    def port(self) -> int:
        """The port on 127.0.0.1; the same after `restart`."""
        return self._port

    @property
    def _open_address(self) -> str:
        """A listener without authentication for this broker's own calls, if there is one."""
        open_listeners = {
            listener.name
            for listener in self.server.broker.config.listeners
            if listener.security_protocol is SecurityProtocol.PLAINTEXT
        }
        ports = [port for name, _, port in self.server.addresses if name in open_listeners]
        return f"{HOST}:{ports[0]}" if ports else self.bootstrap

    @property
    def directory(self) -> Path:
        """The data directory of the running broker."""
        if self._directory is None:
            raise RuntimeError(_NOT_RUNNING)
        return Path(self._directory.name)

    @property
    def server(self) -> BrokerServer:
        """The broker itself, which runs on another thread's event loop."""
        if self._server is None:
            raise RuntimeError(_NOT_RUNNING)
        return self._server

    # Topics and records

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str | None] | None = None
    ) -> None:
        """Create a topic.

        :raises KafkaError: The broker's error, such as TOPIC_ALREADY_EXISTS.
        """
        topic = NewTopic(name, partitions, configs=configs or {})
        raise_errors(self.client.admin.create_topics([topic]).values())

    def delete_topic(self, name: str) -> None:
        """Delete a topic.

        :raises KafkaError: The broker's error, such as UNKNOWN_TOPIC_OR_PARTITION.
        """
        raise_errors(self.client.admin.delete_topics([name]).values())

    def topics(self) -> dict[str, int]:
        """Return the partition count of every topic by name, without internal topics."""
        described = self.client.admin.describe_topics()
        return {
            name: len(topic.partitions)
            for name, topic in described.items()
            if isinstance(topic, TopicInfo) and not topic.is_internal
        }

    def produce(
        self,
        topic: str,
        value: str | bytes | None,
        key: str | bytes | None = None,
        *,
        partition: int | None = None,
        headers: RecordHeaders = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Write one record and wait until it is stored; text is encoded as UTF-8. Creates the topic if needed.

        :raises KafkaError: The broker's error.
        """
        if self._producer is None:
            self._producer = self.client.producer()
        return self._producer.send_and_wait(
            topic,
            _as_bytes(value),
            _as_bytes(key),
            partition=partition,
            headers=headers,
            timestamp_ms=timestamp_ms,
        )

    def records(
        self, topic: str, *, count: int | None = None, timeout_ms: int = WAIT_MS
    ) -> list[ConsumedRecord]:
        """Return all records of a topic by partition and offset; with `count`, wait until there are that many.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        :raises TimeoutError: When fewer than `count` have arrived within `timeout_ms`.
        """
        [described] = self.client.admin.describe_topics([topic]).values()
        if not isinstance(described, TopicInfo):
            raise described
        starts = {TopicPartition(topic, index): EARLIEST for index in range(len(described.partitions))}
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        found: list[ConsumedRecord] = []
        with self.client.consumer(starts, stop_at_end=count is None) as consumer:
            if count is None:
                found.extend(consumer)
            while count is not None and len(found) < count:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    message = f"topic '{topic}' has {len(found)} records after {timeout_ms} ms, not {count}"
                    raise TimeoutError(message)
                found += consumer.poll(left_ms)
        return sorted(found, key=lambda record: (record.partition, record.offset))

    @property
    def client(self) -> BlockingClient:
        """A connected `KafkaClient` of Barnabas."""
        if self._client is None:
            assert self.server
            self._client = BlockingClient(self._open_address, client_id=OWN_CLIENT_ID)
        return self._client

    # Faults

    def fail_next(
        self, api: str | int, error: ErrorCode | str | int, times: int = 1, *, topic: str | None = None
    ) -> Fault:
        """Answer the next `times` requests of an API with an error, without executing them.

        :param api: Its name, such as "Produce", or its key.
        :param topic: Only requests that name this topic; the whole request fails.
        :raises ValueError: For an unknown API or error.
        """
        return self._inject(ErrorFault(self._api_key(api), times, topic, error_code_of(error)))

    def delay_next(self, api: str | int, delay_ms: int, times: int = 1, *, topic: str | None = None) -> Fault:
        """Execute the next `times` requests of an API, and answer `delay_ms` late."""
        return self._inject(Delay(self._api_key(api), times, topic, delay_ms))

    def drop_next(
        self, api: str | int, times: int = 1, *, topic: str | None = None, handled: bool = False
    ) -> Fault:
        """Close the connection instead of answering, before the request is executed, or after it with `handled`."""
        return self._inject(Drop(self._api_key(api), times, topic, handled))

    def clear_faults(self) -> None:
        """Remove all pending faults."""
        self._faults.clear()

    def _api_key(self, api: str | int) -> int:
        return api_key_of(api, self.server.broker.apis)

    def _inject(self, fault: Fault) -> Fault:
        self._faults.add(fault)
        self.server.dispatcher.interceptor = self._faults.intercept
        return fault


def _as_bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
