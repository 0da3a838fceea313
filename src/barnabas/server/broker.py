"""A running broker: its start, its listeners and its stop."""

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

from barnabas.api.context import BrokerContext
from barnabas.api.dispatch import Dispatcher
from barnabas.base.clock import Clock, SystemClock
from barnabas.base.os_errors import reason_of
from barnabas.base.source_limiter import WINDOW_MS as LIMITER_WINDOW_MS
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.config.keys.barnabas import FAILURE_DETECTION_KEY
from barnabas.config.listener_validation import check_listeners
from barnabas.log.log_directory import LogDirectory
from barnabas.metadata.brokers import LOST_LOG_DIR, BrokerRegistration
from barnabas.metadata.features import decide_finalize, supported_features
from barnabas.metadata.scram import decide_add_user
from barnabas.metadata.store import Store
from barnabas.metadata.woken_task import WokenTask
from barnabas.net.listener import StartError
from barnabas.policy.policies import Policies
from barnabas.registry.embedded import EmbeddedRegistry
from barnabas.security.acl_use import INTERVAL_MS as ACL_USE_INTERVAL_MS
from barnabas.security.acl_use import write_acl_use
from barnabas.server.assembly import BrokerParts, Environment, assemble
from barnabas.server.background.expiration import INTERVAL_MS as EXPIRATION_INTERVAL_MS
from barnabas.server.background.expiration import Expiration
from barnabas.server.broker_lifecycle import RETRY_S, BrokerLifecycle
from barnabas.server.disk_space import CHECK_INTERVAL_MS, DiskWatch
from barnabas.server.listeners import connection_limits, open_files_max
from barnabas.server.metadata_comparison import COMPARISON_INTERVAL_MS
from barnabas.server.metrics import metrics_registry
from barnabas.server.policies import policy_settings
from barnabas.server.registry import LISTENER_KEY, embedded_registry
from barnabas.server.shutdown import Shutdown
from barnabas.server.startup import directories_to_register
from barnabas.server.stores import metadata_directory, open_store
from barnabas.server.web import WebFactory, WebServer, http_hosts, https_context, site_of
from barnabas.telemetry.byte_rates import SAMPLE_INTERVAL_MS
from barnabas.telemetry.http import MetricsServer
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.requests import RequestStatistics
from barnabas.tls.settings import TlsError

_log = get_logger("barnabas.server")


async def start_broker(
    config: BrokerConfig,
    *,
    clock: Clock | None = None,
    rng: random.Random | None = None,
    store: Store | None = None,
    bootstrap_users: Mapping[str, str] | None = None,
    web: WebFactory | None = None,
) -> "BrokerServer":
    """Start a broker of an embedded cluster on the running event loop. A failed start leaves nothing open.

    :param store: Holds the metadata; by default an embedded store in `metadata.log.dir` or the first log directory.
    :param bootstrap_users: Passwords of users to add, by name; existing users are not changed.
    :param web: Creates the server of console and metrics; without it there are only metrics.
    :raises ConfigError: If the listeners are not valid.
    :raises StartError: If an address is in use or a directory cannot be written to.
    :raises LogDirectoryError: If a log directory cannot be used.
    :raises StoreError: If the metadata store cannot be read.
    :raises MalformedFile: If a `meta.properties` is damaged.
    :raises PolicyLoadError: If a policy cannot be loaded.
    """
    check_listeners(config)
    shutdown = Shutdown()
    try:
        policies = Policies(policy_settings(config))
        await policies.load()
        shutdown.add_async(policies.close)
        store = store or open_store(config, clock or SystemClock(), shutdown)
        environment = Environment(store, clock or SystemClock(), rng or random.SystemRandom())
        parts = await assemble(config, environment, policies, shutdown)
        server = BrokerServer(parts, shutdown)
        await server._start(bootstrap_users or {}, web)  # noqa: SLF001
    except BaseException:
        shutdown.is_abrupt = True  # logs that may not have been recovered must not be marked as clean
        await shutdown.run()
        raise
    return server


class BrokerServer:
    """A running broker. All methods are to be called on its event loop."""

    def __init__(self, parts: BrokerParts, shutdown: Shutdown) -> None:
        self.parts = parts
        self._shutdown = shutdown
        self._loop = asyncio.get_running_loop()
        self._metrics: WebServer | None = None
        self._schema_registry: EmbeddedRegistry | None = None
        self.lifecycle = BrokerLifecycle(
            self._config.node_id,
            parts.environment.store,
            parts.metadata,
            self._registration,
            self._joined,
            parts.replicas.offline_replicas,
            parts.broker.election_rules,
        )
        self._registering = WokenTask(
            "registration",
            self._register_and_accept,
            retry_s=RETRY_S,
            log=_log,
            warning="cannot register changed listeners or directories; retrying",
        )
        self._serves = False  #: the start is complete
        self.serves_pages = False  #: the console, not only metrics
        #: Set when all log directories have failed, or the broker cannot follow the metadata any more: it must stop.
        self.failed = asyncio.Event()

    async def _start(self, bootstrap_users: Mapping[str, str], web: WebFactory | None) -> None:
        parts = self.parts
        parts.log_manager.on_directory_failure = self._on_directory_failure
        self._fail_without_directories()
        parts.metadata.on_failure = self.failed.set
        for user, password in bootstrap_users.items():
            await self._add_user(user, password)
        self._shutdown.add(parts.connections.abort_all)
        self._shutdown.add_async(parts.listeners.stop)
        await parts.listeners.start(self._config, parts.dynamic_config.static)
        supported = supported_features(self.broker.apis)
        await parts.metadata.write(lambda image: decide_finalize(image.finalized_features, supported))
        await self._serve_registry()
        await self._serve_metrics(web)
        await self._join()  # last, because a start that fails after it counts as an unclean stop
        await asyncio.to_thread(parts.log_manager.begin_service)  # nothing after this can prevent the start
        # Not before the service: until then, the logs count as cleanly closed. And not before this broker has joined:
        # until then, it may still lead in an epoch of which it has lost records.
        parts.coordinators.start(parts.metadata)
        self.broker.log_dir_moves.resume()
        await parts.listeners.accept()
        parts.listeners.on_changed = self._registering.wake
        self._shutdown.add_async(self._registering.stop)
        self._registering.start()
        parts.dynamic_config.on_change(parts.listeners.reconfigure)
        parts.dynamic_config.on_check(parts.listeners.check)
        parts.dynamic_config.on_change(self._reconfigure)
        self._start_background_tasks()
        self._shutdown.add_async(lambda: parts.audit.stop(abruptly=self._shutdown.is_abrupt))
        parts.audit.start()
        if self._config.boolean("barnabas.security.log.topic.enable"):
            self._shutdown.add_async(lambda: parts.security_log.stop(abruptly=self._shutdown.is_abrupt))
            parts.security_log.start()
        if self._config.boolean("log.cleaner.enable"):
            parts.cleaner.start()
        parts.controller.start()
        if self._config.integer(FAILURE_DETECTION_KEY) > 0:
            parts.failure_detector.start()
        self._serves = True
        parts.replica_fetchers.on_truncated = parts.background_tasks.truncated
        parts.replica_fetchers.start(self.lifecycle.epoch)
        parts.isr_manager.start()
        parts.replica_reporter.start()
        parts.deletion_reporter.start()
        self._shutdown.add_async(self._leave)

    def _start_background_tasks(self) -> None:
        parts, tasks, clock = self.parts, self.parts.background_tasks, self.parts.environment.clock
        tasks.start()
        expiration = Expiration(parts.dynamic_config, clock, parts.metadata, parts.replicas.trash)
        tokens_ms = self._config.integer("delegation.token.expiry.check.interval.ms")
        tasks.repeat(expiration.expire_history, EXPIRATION_INTERVAL_MS, is_cancelled=True)
        tasks.repeat(expiration.empty_trash, EXPIRATION_INTERVAL_MS, is_cancelled=True)
        tasks.repeat(expiration.remove_delegation_tokens, tokens_ms, is_cancelled=True)
        if self.broker.authorizer is not None:
            tasks.repeat(self._keep_acl_use, ACL_USE_INTERVAL_MS)
            self._shutdown.add_async(self._keep_acl_use)
        tasks.repeat(self.broker.security_log.flush, LIMITER_WINDOW_MS)
        tasks.repeat(parts.metadata.record_left_out, LIMITER_WINDOW_MS, is_cancelled=True)
        tasks.repeat(self.broker.byte_rates.sample, SAMPLE_INTERVAL_MS)
        tasks.repeat(parts.metadata_comparison.compare, COMPARISON_INTERVAL_MS)
        paths = [Path(directory) for directory in self._config.log_dirs]
        tasks.repeat(DiskWatch(paths, clock).watch, CHECK_INTERVAL_MS, 0)

    async def _keep_acl_use(self) -> None:
        """Write the record of used ACLs to the disk. After an abrupt end nothing is written."""
        if self.broker.authorizer is not None and not self._shutdown.is_abrupt:
            use, directory = self.broker.authorizer.take_use_record(), metadata_directory(self._config)
            await asyncio.to_thread(write_acl_use, directory, self._config.node_id, use)

    async def _add_user(self, user: str, password: str) -> None:
        rng = self.parts.environment.rng
        is_added = await self.parts.metadata.write(
            lambda image: decide_add_user(image.scram_credentials, user, password, rng)
        )
        _log.info("added a user" if is_added else "user exists already and is not changed", user=user)

    def _on_directory_failure(self, _: LogDirectory) -> None:
        """Report its replicas, and stop the broker if no directory is left. May be called from any thread."""
        self._loop.call_soon_threadsafe(self.parts.replica_reporter.wake)
        self._fail_without_directories()

    def _fail_without_directories(self) -> None:
        if all(directory.failure is not None for directory in self.parts.log_manager.directories):
            _log.error("all log directories have failed: the broker cannot serve")
            self._loop.call_soon_threadsafe(self._fail)

    def _fail(self) -> None:
        """End all connections as well, like Apache Kafka, whose process halts.

        After an error, clients would ask other brokers for metadata, which still names this broker as the leader.
        """
        self.failed.set()
        self.parts.connections.abort_all()

    @property
    def broker(self) -> BrokerContext:
        return self.parts.broker

    @property
    def dispatcher(self) -> Dispatcher:
        return self.parts.dispatcher

    @property
    def statistics(self) -> RequestStatistics:
        return self.parts.statistics

    @property
    def policies(self) -> Policies:
        return self.parts.broker.policies

    @property
    def cluster_id(self) -> str:
        return self.parts.broker.cluster_id

    @property
    def _config(self) -> BrokerConfig:
        return self.parts.dynamic_config.current

    async def _reconfigure(self, before: BrokerConfig, after: BrokerConfig) -> None:
        self.parts.connections.limits = connection_limits(after, open_files_max())
        if before.items_or_none("cordoned.log.dirs") != after.items_or_none("cordoned.log.dirs"):
            self._registering.wake()

    async def _register_and_accept(self) -> None:
        """Serve on new listeners after they are registered: clients ask on them for brokers first."""
        await self.lifecycle.update()
        await self.parts.listeners.accept()

    async def _join(self) -> None:
        """Register this broker, and elect it where it may lead."""
        log_manager = self.parts.log_manager
        before = self.parts.metadata.image.brokers.get(str(self._config.node_id))
        is_clean = before is not None and await asyncio.to_thread(
            log_manager.was_closed_cleanly, before.epoch, set(before.log_dirs) - {LOST_LOG_DIR}
        )
        await self.lifecycle.start(is_clean=is_clean, lost=self.parts.lost_replicas)
        await self.parts.replicas.open_empty(self.parts.lost_replicas)

    async def _leave(self) -> None:
        await (self.lifecycle.abandon() if self._shutdown.is_abrupt else self.lifecycle.leave())

    def _joined(self, registration: BrokerRegistration) -> None:
        self.parts.log_manager.broker_epoch = registration.epoch
        if self._serves:
            self.parts.replica_fetchers.start(registration.epoch)

    def _registration(self) -> BrokerRegistration:
        """Return this broker's endpoints, rack and log directories."""
        log_manager = self.parts.log_manager
        log_dirs = directories_to_register(self.parts.metadata.image, self._config.node_id, log_manager)
        rack = self._config.text_or_none("broker.rack")
        cordoned = all(map(log_manager.is_cordoned, log_manager.directories))
        return BrokerRegistration(
            self._config.node_id, self.parts.listeners.endpoints, rack, log_dirs, cordoned=cordoned
        )

    async def _serve_metrics(self, web: WebFactory | None) -> None:
        address = self._config.text("barnabas.metrics.listener")
        if not address:
            return
        registry = metrics_registry(self.parts)
        try:
            https = https_context(self._config, self.parts.environment.clock.monotonic_ms)
        except (TlsError, ConfigError) as error:
            raise StartError(f"Metrics cannot be served over HTTPS: {error}.") from error
        own_registry = "" if self._schema_registry is None else self._schema_registry.own_url
        site = (
            site_of(self._config, self.addresses, registry, https, own_registry) if web is not None else None
        )
        self.serves_pages = site is not None
        if web is not None and site is not None:
            self._metrics = web(site)
        else:
            self._metrics = MetricsServer(registry, address, http_hosts(self._config), tls=https)
        try:
            await self._metrics.start()
        except OSError as error:
            reason = reason_of(error)
            message = (
                f"Metrics cannot be served on {address}: {reason}. Choose another barnabas.metrics.listener."
            )
            raise StartError(message) from error
        self._shutdown.add_async(self._metrics.close)

    async def _serve_registry(self) -> None:
        now_ms = self.parts.environment.clock.monotonic_ms
        self._schema_registry = embedded_registry(self._config, self.addresses, now_ms)
        if self._schema_registry is None:
            return
        try:
            await self._schema_registry.start()
        except OSError as error:
            address = self._config.text(LISTENER_KEY)
            problem = f"The schema registry cannot be served on {address}: {reason_of(error)}."
            message = f"{problem} Choose another {LISTENER_KEY}."
            raise StartError(message) from error
        self._shutdown.add_async(self._schema_registry.close)

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """(listener name, host, port) of every open listener, with the bound port."""
        return self.parts.listeners.addresses

    @property
    def metrics_port(self) -> int | None:
        """The port of /metrics; None if it is not served."""
        return self._metrics.port if self._metrics else None

    @property
    def registry_port(self) -> int | None:
        """The port of the schema registry; None if there is none."""
        return self._schema_registry.port if self._schema_registry else None

    async def stop(self) -> None:
        """Stop serving, flush the logs, and mark them as cleanly closed."""
        await self._shutdown.run()

    async def kill(self) -> None:
        """Stop as a killed process does: write nothing more, and leave the logs unmarked."""
        self._shutdown.is_abrupt = True
        await self._shutdown.run()
