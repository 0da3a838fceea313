"""`barnabas serve --brokers N`: runs brokers as processes of one machine that share a metadata store."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.base.hosts import EVERY_INTERFACE
from barnabas.base.kept_processes import EXIT_FAILED, is_set_within, keep_running, stop_process
from barnabas.client.core.address import BrokerAddress
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.listeners import Listener
from barnabas.log.startup.meta_properties import META_PROPERTIES_FILE
from barnabas.server.stores import SQLITE_SCHEME, STORE_FILE, STORE_KEY, metadata_directory
from barnabas.telemetry.logs import get_logger

#: Directory of the other brokers' data, in each log directory of the first broker.
BROKERS_DIRECTORY = "brokers"

#: How often to check whether a broker accepts connections.
PROBE_INTERVAL_S = 0.02

#: Size of the pieces in which the logs of brokers are copied.
LOG_READ_BYTES = 64 << 10

#: Set in the environment of supervised brokers, with settings and users as JSON: other users of the machine could read
#: passwords among a process's arguments. The brokers stop when their standard input ends, because the supervisor has
#: been killed then.
SUPERVISED = "BARNABAS_SUPERVISED"


_PROGRAM = (sys.executable, "-m", "barnabas", "serve")

_log = get_logger("barnabas.server")


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """How one of the brokers is started."""

    node_id: int
    address: BrokerAddress  #: of its first listener
    settings: Mapping[str, str] = field(repr=False)  #: those that differ from the other brokers'


def plan_brokers(config: BrokerConfig, count: int) -> list[BrokerPlan]:
    """Return the brokers of a cluster on one machine: node ids and ports count up from those of the configuration.

    The first broker has the data and the store of a single broker, so that it can become one of several.

    :raises ConfigError: If a listener has no fixed port, or the configuration names a store.
    """
    if config.text(STORE_KEY):
        raise ConfigError(
            STORE_KEY, config.text(STORE_KEY), "--brokers uses a store of its own; omit one of them"
        )
    for listener in config.listeners:
        if listener.port == 0:
            address = f"{listener.name}://{listener.host}:0"
            raise ConfigError("listeners", address, "with --brokers, listeners must have fixed ports")
    store = f"{SQLITE_SCHEME}{metadata_directory(config) / STORE_FILE}"
    return [_plan_broker(config, number, store) for number in range(count)]


def _plan_broker(config: BrokerConfig, number: int, store: str) -> BrokerPlan:
    node_id = config.node_id + number
    first = config.listeners[0]
    settings = {
        "node.id": str(node_id),
        "broker.id": str(node_id),
        "log.dirs": ",".join(str(_data_directory(Path(path), number, node_id)) for path in config.log_dirs),
        "listeners": ",".join(_shifted(listener, number) for listener in config.listeners),
        STORE_KEY: store,
    }
    if config.is_set("advertised.listeners"):
        advertised = [_advertised(listener, number) for listener in config.listeners if listener.advertised]
        settings["advertised.listeners"] = ",".join(advertised)
    for key in ("barnabas.metrics.listener", "barnabas.registry.listener"):
        web_host, _, web_port = config.text(key).rpartition(":")
        if web_port not in ("", "0"):
            settings[key] = f"{web_host}:{int(web_port) + number}"
    if number > 0:
        settings["barnabas.console.enable"] = "false"
    host = first.host if first.host not in EVERY_INTERFACE else "127.0.0.1"
    return BrokerPlan(node_id, BrokerAddress(host, first.port + number), settings)


def _data_directory(path: Path, number: int, node_id: int) -> Path:
    return path if number == 0 else path / BROKERS_DIRECTORY / str(node_id)


def _shifted(listener: Listener, number: int) -> str:
    return f"{listener.name}://{BrokerAddress(listener.host, listener.port + number)}"


def _advertised(listener: Listener, number: int) -> str:
    assert listener.advertised is not None
    host, port = listener.advertised
    return f"{listener.name}://{BrokerAddress(host, port + number if port else 0)}"


class Supervisor:
    """Starts brokers, starts those again that end, and stops all of them in order."""

    def __init__(
        self,
        plans: Sequence[BrokerPlan],
        arguments: Sequence[str],
        settings: Mapping[str, str],
        users: Sequence[str],
        *,
        names_brokers: bool,
    ) -> None:
        """:param arguments: Options of `barnabas serve` for all brokers.
        :param settings: Settings of all brokers.
        :param users: Users that the first broker adds, as in --add-scram.
        :param names_brokers: Begin each line of a broker's log with its id.
        """
        self._plans = plans
        self._arguments = arguments
        self._settings = settings
        self._users = users
        self._names_brokers = names_brokers
        self._stopping = asyncio.Event()
        self._processes: dict[int, Process] = {}  #: by node id
        self._reloads: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Let `run` stop the brokers and return."""
        self._stopping.set()

    def reload(self) -> None:
        """Let each broker reload its policies, as SIGHUP does."""
        for plan in self._plans:
            task = asyncio.create_task(self._reload(plan))
            self._reloads.add(task)
            task.add_done_callback(self._reloads.discard)

    async def _reload(self, plan: BrokerPlan) -> None:
        while not await _accepts(plan.address):  # SIGHUP ends a process that does not handle it yet
            if await is_set_within(self._stopping, PROBE_INTERVAL_S):
                return
        process = self._processes.get(plan.node_id)
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGHUP)

    async def run(self, on_ready: Callable[[], None]) -> int:
        """Run until `stop`, or until a broker cannot start; return the largest exit code of the brokers.

        :param on_ready: Called when all brokers accept connections.
        """
        try:
            async with asyncio.TaskGroup() as group:
                keepers = [group.create_task(self._keep(plan)) for plan in self._plans]
                ready = group.create_task(self._wait_until_ready(on_ready))
                await self._stopping.wait()
                ready.cancel()
                await self._stop_all()
        finally:
            await self._stop_after_error()
        return max(keeper.result() for keeper in keepers)

    async def _stop_all(self) -> None:
        for plan in self._plans:  # one after the other, so that the next can take the partitions over
            await self._stop(plan.node_id)

    async def _stop_after_error(self) -> None:
        """Stop the brokers that still run after an error."""
        try:
            await self._stop_all()
        finally:
            for process in self._processes.values():
                if process.returncode is None:
                    process.kill()

    async def _wait_until_ready(self, on_ready: Callable[[], None]) -> None:
        for plan in self._plans:
            while not await _accepts(plan.address):
                await asyncio.sleep(PROBE_INTERVAL_S)
        on_ready()

    async def _keep(self, plan: BrokerPlan) -> int:
        """Run one broker again and again; return the exit code of its last run."""
        if not await self._may_start(plan):
            return 0

        async def run_once() -> int:
            try:
                process = await self._start(plan)
            except OSError as error:  # such as too many open files, or too little memory
                _log.error("cannot start the process of a broker", broker_id=plan.node_id, why=str(error))
                return EXIT_FAILED
            if self._stopping.is_set():  # `run` has not seen this process
                process.terminate()
            # The copy continues if this task is cancelled: a broker cannot stop while it waits for its log's reader.
            await asyncio.shield(self._copy_log(plan, process))
            return await process.wait()

        def warn(code: int, pause_s: float) -> None:
            _log.warning(
                "a broker has ended; starting it again",
                broker_id=plan.node_id,
                exit_code=code,
                pause_s=pause_s,
            )

        return await keep_running(run_once, self._stopping, warn)

    async def _may_start(self, plan: BrokerPlan) -> bool:
        """Wait for the first broker if this one is new; return whether it shall be started.

        Only the first broker may have data from before: if a new one formed the cluster, it would get another id.
        """
        first = self._plans[0]
        if plan is first or _has_joined(plan):
            return True
        while not await _accepts(first.address):
            if await is_set_within(self._stopping, PROBE_INTERVAL_S):
                return False
        return True

    async def _start(self, plan: BrokerPlan) -> Process:
        own = [f"--set={key}={value}" for key, value in plan.settings.items()]
        users = self._users if plan is self._plans[0] else ()
        given = json.dumps({"settings": {**self._settings}, "users": [*users]})
        process = await asyncio.create_subprocess_exec(
            *_PROGRAM,
            *self._arguments,
            *own,
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE if self._names_brokers else None,
            start_new_session=True,
            env={**os.environ, SUPERVISED: given},
        )
        self._processes[plan.node_id] = process
        return process

    async def _copy_log(self, plan: BrokerPlan, process: Process) -> None:
        """Copy the log of a broker to that of this process, until the broker ends."""
        if process.stderr is None:
            return
        prefix, rest = f"broker {plan.node_id} | ".encode(), b""
        while data := await process.stderr.read(LOG_READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            _write_log(b"".join(prefix + line + b"\n" for line in lines))
        if rest:
            _write_log(prefix + rest + b"\n")

    async def _stop(self, node_id: int) -> None:
        process = self._processes.get(node_id)
        if process is not None and not await stop_process(process):
            _log.error("a broker did not stop and was killed", broker_id=node_id)


def _write_log(lines: bytes) -> None:
    # If stderr is closed the lines are lost and the brokers continue.
    with suppress(OSError, ValueError):
        sys.stderr.buffer.write(lines)
        sys.stderr.buffer.flush()


def supervised_options(environment: Mapping[str, str]) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the settings and users that a supervised broker gets; nothing for other brokers."""
    given = json.loads(environment.get(SUPERVISED, '{"settings": {}, "users": []}'))
    return given["settings"], given["users"]


def _has_joined(plan: BrokerPlan) -> bool:
    directories = map(Path, plan.settings["log.dirs"].split(","))
    return any((directory / META_PROPERTIES_FILE).exists() for directory in directories)


async def _accepts(address: BrokerAddress) -> bool:
    try:
        _, writer = await asyncio.open_connection(address.host, address.port)
    except OSError:
        return False
    writer.close()
    return True
