"""A real broker inside a test's process, on a free port, with data in a temporary directory."""

import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import uvloop

from barnabas.client.blocking import BlockingClient
from barnabas.client.core.loop_thread import LoopThread
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
from barnabas.testing.topics import EmbeddedKafka
from barnabas.testing.virtual_time import VirtualClock, VirtualTime, VirtualTimeLoop
from barnabas.wire.errors import ErrorCode

HOST = "127.0.0.1"
WAIT_MS = 10_000

_NOT_RUNNING = "the broker is not running: call start(), or use it in a with statement"


#: Settings for tests. The first members of a group do not wait for others: in a test all are present, and three
#: seconds are long. There is no audit, because a test may list all topics.
QUICK_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "barnabas.audit.enable": "false"}


class EmbeddedBroker(EmbeddedKafka):
    """A broker with `start` and `stop`, or a context manager; it can be started again.

    Every method but `start` and `stop` needs a running broker. Faults do not affect its own calls (`create_topic`,
    `produce`, `records` ...).
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        *,
        virtual_time: bool | VirtualTime = False,
        registry: bool = False,
    ) -> None:
        """:param settings: Broker settings by Kafka's names, such as {"auto.create.topics.enable": "false"}.
        :param users: Passwords by name. If given, clients must log in on `bootstrap`, by PLAIN or SCRAM.
        :param virtual_time: Allow `advance`, or run in the same time as other brokers. The broker is a little slower
            then.
        :param registry: Serve a schema registry, too, at `registry_url`.
        """
        super().__init__()
        self._settings = dict(settings or {})
        self._users = dict(users or {})
        self._port = 0
        self._has_registry = registry
        self._registry_port = 0
        self._directory: TemporaryDirectory[str] | None = None
        self._thread: LoopThread | None = None
        self._server: BrokerServer | None = None
        self._faults = Faults()
        self._virtual_time = VirtualTime() if virtual_time is True else virtual_time or None
        self._virtual_loop: VirtualTimeLoop | None = None

    # Starting and stopping

    def start(self) -> Self:
        """Serve on a free port.

        :raises ConfigError: For invalid settings.
        """
        if self._thread is not None:
            message = f"the broker is already running on {self.bootstrap}"
            raise RuntimeError(message)
        self._directory = TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True)
        self._virtual_loop = VirtualTimeLoop(self._virtual_time) if self._virtual_time else None
        self._thread = LoopThread("barnabas-broker", self._virtual_loop or uvloop.new_event_loop())
        self._port = self._registry_port = 0
        try:
            self.serve()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop and remove the data; does nothing if the broker is stopped."""
        with ExitStack() as steps:  # from the last one to the first, whatever they raise
            steps.callback(self._faults.clear)
            steps.callback(self._remove_data)
            steps.callback(self._end_thread)
            self.halt(kill=False)

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    def _remove_data(self) -> None:
        directory, self._directory = self._directory, None
        if directory is not None:
            directory.cleanup()

    def restart(self, *, kill: bool = False) -> None:
        """Stop and start again on the same port with the same data; connections are closed.

        With `kill` nothing is flushed, checkpointed or marked as cleanly stopped, as if the process were killed:
        the next start recovers. Pending faults stay.
        """
        self.halt(kill=kill)
        self.serve()

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call a function on the broker's own thread."""
        if self._thread is None:
            raise RuntimeError(_NOT_RUNNING)
        self._thread.call_soon(function)

    def block_brokers(self, broker_ids: Collection[int]) -> Future[None]:
        """Let requests to these brokers fail, and no others, from the end of the future on."""
        clients = self.server.parts.broker_clients

        async def block() -> None:
            for client in clients:
                client.block(broker_ids)

        if self._thread is None:
            raise RuntimeError(_NOT_RUNNING)
        return self._thread.start(block())

    def serve(self) -> None:
        """Serve after `halt`, on the same port with the same data."""
        assert self._thread is not None
        settings = {
            "listeners": f"PLAINTEXT://{HOST}:{self._port}",
            "log.dirs": str(self.directory),
            **(login_settings(HOST, self._port, self._users) if self._users else {}),
            **QUICK_SETTINGS,
            **({"barnabas.registry.listener": f"{HOST}:{self._registry_port}"} if self._has_registry else {}),
            **self._settings,
        }
        loaded = load_broker_config(settings=[f"{key}={value}" for key, value in settings.items()])
        for unknown in loaded.warnings:
            hint = f"; did you mean {unknown.nearest}?" if unknown.nearest else ""
            warnings.warn(f"unknown setting of a broker: {unknown.name}{hint}", stacklevel=2)
        clock = None if self._virtual_time is None else VirtualClock(self._virtual_time)
        starting = start_broker(loaded.config, clock=clock, bootstrap_users=self._users)
        self._server = server = self._thread.run(starting)
        _, _, self._port = server.addresses[0]
        self._registry_port = server.registry_port or 0
        if not self._faults.is_empty:
            server.dispatcher.interceptor = self._faults.intercept

    def halt(self, *, kill: bool) -> None:
        """Stop serving, but keep the port and the data; with `kill` as if the process were killed."""
        server, self._server = self._server, None
        try:
            self._close_client()
        finally:
            if server is not None and self._thread is not None:
                self._thread.run(server.kill() if kill else server.stop())

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
    def registry_url(self) -> str:
        """`schema.registry.url` for clients; the same after `restart`.

        :raises RuntimeError: Without a registry.
        """
        if not self.server.registry_port:
            message = "the broker has no schema registry: EmbeddedBroker(registry=True)"
            raise RuntimeError(message)
        is_https = self.server.broker.config.boolean("barnabas.registry.ssl.enable")
        return f"{'https' if is_https else 'http'}://{HOST}:{self.server.registry_port}"

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

    # Time

    def advance(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Move the time of the broker forward: its timers fire in order, without the wait.

        Retention removes records, and sessions and transactions expire. Clients keep their time. Connections that are
        then idle for longer than `connections.max.idle.ms` are closed.

        :raises RuntimeError: Without `virtual_time`.
        """
        if self._virtual_time is None or self._thread is None:
            message = "advance needs a running broker with virtual time: EmbeddedBroker(virtual_time=True)"
            raise RuntimeError(message)
        self._virtual_time.advance(hours * 3_600 + minutes * 60 + seconds, self.virtual_loop)

    @property
    def virtual_loop(self) -> dict[VirtualTimeLoop, LoopThread]:
        """The event loop of virtual time and its thread; empty without virtual time."""
        if self._virtual_loop is None or self._thread is None:
            return {}
        return {self._virtual_loop: self._thread}

    def _new_client(self) -> BlockingClient:
        assert self.server
        return BlockingClient(self._open_address, client_id=OWN_CLIENT_ID)

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
