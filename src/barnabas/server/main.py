"""`barnabas serve`: start a broker from a command line, and run it until a signal stops it."""

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from barnabas import __version__
from barnabas.base.arguments import conceal
from barnabas.base.clock import SystemClock
from barnabas.base.kept_processes import EXIT_CANNOT_START, EXIT_FAILED
from barnabas.client.core.address import BrokerAddress
from barnabas.config.broker_config import BrokerConfig, find_broker_key
from barnabas.config.definition import ConfigError
from barnabas.config.listener_validation import check_listeners
from barnabas.config.listeners import SecurityProtocol
from barnabas.config.load import LoadedConfig, environment_name, load_broker_config, read_properties
from barnabas.config.providers import Variables
from barnabas.log.checkpoints import MalformedFile
from barnabas.log.log_directory import LogDirectoryError
from barnabas.metadata.store import StoreError
from barnabas.net.listener import StartError
from barnabas.policy.loading import PolicyLoadError
from barnabas.server.bootstrap_users import bootstrap_users
from barnabas.server.broker import BrokerServer, start_broker
from barnabas.server.garbage import calm_collector, collect_all_when_quiet
from barnabas.server.process_log import FORMAT_KEY, ProcessLog, everything_logged
from barnabas.server.registry import LISTENER_KEY
from barnabas.server.supervisor import (
    SUPERVISED,
    BrokerPlan,
    Supervisor,
    plan_brokers,
    supervised_options,
)
from barnabas.server.web import WebFactory
from barnabas.telemetry.logs import configure, get_logger
from barnabas.wire.errors import KafkaError

_log = get_logger("barnabas.server")

EXIT_STOPPED = 0
DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_DATA = Path("data")
METRICS_KEY = "barnabas.metrics.listener"

#: The addresses that stand for every interface, each with one at which clients on the same machine connect.
_LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}

#: How long a thread may compute before the event loop continues: Python's default of 5 ms would delay each callback of
#: the loop.
SWITCH_INTERVAL_S = 0.001


def serve(
    config_file: Path | None,
    data: Path | None,
    listen: str | None,
    overrides: Mapping[str, str],
    users: Sequence[str] = (),
    web: WebFactory | None = None,
    brokers_count: int = 1,
) -> int:
    """Run a broker until SIGTERM or SIGINT; return the exit code of the process.

    The exit code is 0 after a clean stop, 1 if all log directories failed or the broker crashed, and 2 if it cannot
    start, with the reason on stderr.

    :param users: The values of --add-scram.
    :param web: Creates the server of the console.
    :param brokers_count: With more than one, run as many processes, which share a metadata store.
    """
    inherited_settings, inherited_users = supervised_options(os.environ)
    overrides, users = {**inherited_settings, **overrides}, [*users, *inherited_users]
    process_log = ProcessLog.early(overrides, os.environ, config_file)
    variables = Variables()
    try:
        loaded = load(config_file, data, listen, overrides)
        variables = loaded.variables
        passwords = bootstrap_users(users, os.environ)
        conceal([*passwords.values(), *_sensitive(overrides)])
        if brokers_count > 1:
            has_pages = web is not None and loaded.config.boolean("barnabas.console.enable")
            plans = plan_brokers(loaded.config, brokers_count)
            shared = {key: value for key, value in overrides.items() if key not in plans[0].settings}
            arguments = [f"--config={config_file}"] if config_file else []
            supervisor = Supervisor(plans, arguments, shared, users, names_brokers=not process_log.is_json)
            return _run_several(loaded.config, plans, supervisor, process_log, has_pages=has_pages)
        return run(loaded, passwords, web, process_log)
    except (ConfigError, StartError, LogDirectoryError, StoreError, MalformedFile, PolicyLoadError) as error:
        process_log.cannot_start(variables.message_of(error))
    except KafkaError as error:  # from a change of the metadata during the start
        process_log.cannot_start(error.message)
    except Exception:
        _log.exception("the broker crashed")
        return EXIT_FAILED
    return EXIT_CANNOT_START


def _sensitive(settings: Mapping[str, str]) -> list[str]:
    """Return the values of sensitive settings."""
    keys = {name: find_broker_key(name) for name in settings}
    return [settings[name] for name, key in keys.items() if key is not None and key.sensitive]


def load(
    config_file: Path | None, data: Path | None, listen: str | None, overrides: Mapping[str, str]
) -> LoadedConfig:
    """Load the configuration of a broker from the file, the environment and the command line.

    By default it listens on 127.0.0.1:9092 with its data in ./data.

    :raises ConfigError: With the key, the value and what is valid; also if --data or --listen conflict with --set.
    """
    file = read_properties(config_file) if config_file else {}
    replaced = (
        *_replaced("--data", data, ("log.dirs", "log.dir"), file, overrides),
        *_replaced("--listen", listen, ("listeners",), file, overrides),
    )

    def is_given(*keys: str) -> bool:
        return any(key in file or key in overrides or environment_name(key) in os.environ for key in keys)

    defaults = {}
    if not is_given("listeners"):
        defaults["listeners"] = f"PLAINTEXT://{DEFAULT_LISTEN}"
    if not is_given("log.dir", "log.dirs"):
        defaults["log.dirs"] = str(DEFAULT_DATA)
    settings = [f"{key}={value}" for key, value in overrides.items()]
    if data is not None:
        settings.append(f"log.dirs={data}")
    if listen is not None:
        settings.append(f"listeners={listen if '://' in listen else f'PLAINTEXT://{listen}'}")
    loaded = load_broker_config(file={**defaults, **file}, environment=os.environ, settings=settings)
    with loaded.variables.shown():
        check_listeners(loaded.config)
    return loaded._replace(replaced=replaced)


def _replaced(
    option: str,
    value: Path | str | None,
    keys: Sequence[str],
    file: Mapping[str, str],
    overrides: Mapping[str, str],
) -> list[str]:
    """Return a warning for each setting of `keys` that the option overrides, with its source.

    :raises ConfigError: If the command line sets both.
    """
    if value is None:
        return []
    settings = []
    for key in keys:
        if key in overrides:
            message = f"conflicts with --set {key}={overrides[key]}: use only one of them"
            raise ConfigError(option, value, message)
        if (variable := environment_name(key)) in os.environ:
            settings.append(f"{variable}={os.environ[variable]} (environment)")
        if key in file:
            settings.append(f"{key}={file[key]} (file)")
    return [f"{option} is used instead of {setting}" for setting in settings]


def run(
    loaded: LoadedConfig, passwords: Mapping[str, str], web: WebFactory | None, process_log: ProcessLog
) -> int:
    """Serve until a signal stops the broker.

    :param passwords: Passwords of users to create, by name.
    """
    import uvloop

    config = loaded.config
    configure(config.text(FORMAT_KEY), config.text("barnabas.log.level"))
    _warn(loaded, process_log)
    _allow_many_files()
    with everything_logged(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(config, passwords, web, prints_banner=not process_log.is_json))


def _run_several(
    config: BrokerConfig,
    plans: Sequence[BrokerPlan],
    supervisor: Supervisor,
    process_log: ProcessLog,
    *,
    has_pages: bool,
) -> int:
    """Serve with several processes until a signal stops them."""
    configure(config.text(FORMAT_KEY), config.text("barnabas.log.level"))

    def on_ready() -> None:
        if not process_log.is_json:
            _announce(lambda: _print_cluster_banner(plans, config, has_pages=has_pages))

    async def supervise() -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, supervisor.stop)
        _on_hang_up(stop=supervisor.stop, reload=supervisor.reload)
        return await supervisor.run(on_ready)

    return asyncio.run(supervise())


def _allow_many_files() -> None:
    """Raise the soft limit of open files to the hard one, as the JVM does for Kafka: each connection is a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _warn(loaded: LoadedConfig, process_log: ProcessLog) -> None:
    for warning in loaded.warnings:
        process_log.warn(str(warning))
    for replaced in loaded.replaced:
        process_log.warn(replaced)
    if loaded.without_effect:
        process_log.warn(f"these settings have no effect in Barnabas: {', '.join(loaded.without_effect)}")


async def _serve(
    config: BrokerConfig, passwords: Mapping[str, str], web: WebFactory | None, *, prints_banner: bool
) -> int:
    stop, clock = asyncio.Event(), SystemClock()
    starting: asyncio.Future[BrokerServer] = asyncio.get_running_loop().create_future()
    reloads: set[asyncio.Task[None]] = set()

    def stop_by(number: signal.Signals) -> None:
        _log.info(f"received {number.name}: the broker stops")
        stop.set()

    def reload() -> None:
        task = asyncio.create_task(_reload(starting))
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_by, number)
    _on_hang_up(stop=lambda: stop_by(signal.SIGHUP), reload=reload)
    if SUPERVISED in os.environ:
        await asyncio.get_running_loop().connect_read_pipe(lambda: _SupervisorEnd(stop), sys.stdin)
    started_ms = clock.monotonic_ms()
    _log.info(
        "the broker starts", version=__version__, node_id=config.node_id, log_dirs=list(config.log_dirs)
    )
    server = await start_broker(config, clock=clock, bootstrap_users=passwords, web=web)
    if web is None and server.metrics_port and config.boolean("barnabas.console.enable"):
        _log.warning(
            "the console is not served, only metrics: its packages are not installed", extra="console"
        )
    _log.info("the broker serves", **_facts(server), took_ms=clock.monotonic_ms() - started_ms)
    starting.set_result(server)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    if prints_banner:
        _announce(lambda: _print_banner(server, config))
    with calm_collector(asyncio.get_running_loop()):
        collecting = asyncio.create_task(collect_all_when_quiet(lambda: server.statistics.in_bytes))
        await _first_of(stop, server.failed)
        collecting.cancel()
        await asyncio.wait((collecting,))
    stopping_ms = clock.monotonic_ms()
    await server.stop()
    _log.info("the broker has stopped", took_ms=clock.monotonic_ms() - stopping_ms)
    return EXIT_FAILED if server.failed.is_set() else EXIT_STOPPED


def _on_hang_up(*, stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """Let SIGHUP stop this process if its terminal was closed, and otherwise reload policies."""
    on_terminal = os.isatty(0)

    def act() -> None:
        if on_terminal and not os.isatty(0):
            stop()
        else:
            reload()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, act)


class _SupervisorEnd(asyncio.Protocol):
    """Stops the broker when its supervisor has ended without stopping it."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._stop.is_set():
            _log.warning("the supervisor has ended: the broker stops")
            self._stop.set()


def _facts(server: BrokerServer) -> dict[str, object]:
    """Return the identity and the addresses of this broker, for the log."""
    facts: dict[str, object] = {
        "cluster_id": server.cluster_id,
        "node_id": server.broker.broker_id,
        "listeners": [f"{name}://{BrokerAddress(host, port)}" for name, host, port in server.addresses],
    }
    if server.metrics_port:
        facts["metrics_port"] = server.metrics_port
        facts["console"] = server.serves_pages
    return facts


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _reload(starting: Awaitable[BrokerServer]) -> None:
    """Reload the code and files of policies; if that fails, the present ones stay, and the error is logged."""
    server = await starting
    with contextlib.suppress(PolicyLoadError):
        await server.policies.reload()
        _log.info("policies reloaded")


def _announce(print_banner: Callable[[], None]) -> None:
    """Print where clients connect; if stdout is closed the text is lost."""
    with contextlib.suppress(OSError, ValueError):
        print_banner()


def _print_cluster_banner(plans: Sequence[BrokerPlan], config: BrokerConfig, *, has_pages: bool) -> None:
    addresses = ",".join(str(plan.address) for plan in plans)
    print(
        f"Barnabas serves Kafka with {len(plans)} brokers on {addresses}, data in {', '.join(config.log_dirs)}."
    )
    metrics_port, registry_port = (
        int(config.text(key).rpartition(":")[2] or 0) for key in (METRICS_KEY, LISTENER_KEY)
    )
    _print_web_addresses(config, metrics_port, registry_port, has_pages=has_pages)
    _print_examples(plans[0].address, config)


def _print_banner(server: BrokerServer, config: BrokerConfig) -> None:
    _, host, port = server.addresses[0]
    print(f"Barnabas serves Kafka on {BrokerAddress(host, port)}, data in {', '.join(config.log_dirs)}.")
    _print_web_addresses(
        config, server.metrics_port or 0, server.registry_port or 0, has_pages=server.serves_pages
    )
    _print_examples(BrokerAddress(host, port), config)


def _print_web_addresses(
    config: BrokerConfig, metrics_port: int, registry_port: int, *, has_pages: bool
) -> None:
    """Print what is served over HTTP; ports that are 0 are not served, or not known."""
    if metrics_port:
        metrics_host = _local(config.text(METRICS_KEY).rpartition(":")[0] or "127.0.0.1")
        scheme = "https" if config.boolean("barnabas.metrics.ssl.enable") else "http"
        url = f"{scheme}://{metrics_host}:{metrics_port}"
        print(f"Metrics: {url}/metrics")
        if has_pages:
            print(f"Console: {url}/")
    if registry_port:
        registry_host = _local(config.text(LISTENER_KEY).rpartition(":")[0])
        scheme = "https" if config.boolean("barnabas.registry.ssl.enable") else "http"
        print(f"Schema registry: {scheme}://{registry_host}:{registry_port}")


def _print_examples(listener: BrokerAddress, config: BrokerConfig) -> None:
    command, bootstrap = _command(), listener._replace(host=_local(listener.host))
    is_secured = config.listeners[0].security_protocol is not SecurityProtocol.PLAINTEXT
    options = f"--bootstrap {bootstrap}" + (" --command-config FILE" if is_secured else "")
    print("Try, in another terminal:")
    print(f"  {command} topics create greetings {options}")
    print(f"  echo hello | {command} produce greetings {options}")
    print(f"  {command} consume greetings --from-beginning {options}", flush=True)


def _local(host: str) -> str:
    """Return where clients on this machine reach a listener on `host`."""
    return _LOOPBACK_OF.get(host, host)


def _command() -> str:
    """Return how users can start this program: its name if it is on PATH, else the path that started it."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "barnabas" and not shutil.which("barnabas") else "barnabas"
