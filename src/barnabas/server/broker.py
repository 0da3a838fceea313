"""A whole broker, put together from its rooms: started, serving, stopped."""

import asyncio
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import barnabas.api
from barnabas.api import registry
from barnabas.api.context import Node
from barnabas.api.dispatch import Dispatcher
from barnabas.base.clock import Clock, SystemClock
from barnabas.base.turns import Turns
from barnabas.base.worker import Worker
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.listener_validation import check_listeners
from barnabas.log.compaction.cleaner import CleanerSettings, LogCleaner
from barnabas.log.compaction.log_worker import LogWorker
from barnabas.log.imports.importer import Replacements
from barnabas.log.log_directory import LogDirectory
from barnabas.log.log_manager import LogManager
from barnabas.log.startup.meta_properties import read_meta_properties
from barnabas.log.trash.trash import settle_trash
from barnabas.metadata.audit.auditor import Auditor
from barnabas.metadata.audit.stored_history import decide_keep_history
from barnabas.metadata.brokers import BrokerRegistration, decide_register
from barnabas.metadata.client_metrics import ClientTelemetry
from barnabas.metadata.cluster import SECRET_BYTES, decide_form
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.features import decide_finalize, supported_features
from barnabas.metadata.internal_topics import TRANSACTION_TOPIC
from barnabas.metadata.scram import decide_add_user
from barnabas.metadata.topic_deletion import decide_forget
from barnabas.metadata.topic_recovery import FoundLog, decide_adopt
from barnabas.metadata.writer import MetadataWriter
from barnabas.net.connections import Connections
from barnabas.net.listener import StartError, reason_of
from barnabas.policy.policies import Policies
from barnabas.quotas.manager import QuotaManager
from barnabas.replication.fetch_sessions import FetchSessionCache
from barnabas.replication.flusher import Flusher
from barnabas.replication.log_configs import cleaner_settings, cordons, log_config
from barnabas.replication.log_dir_moves import LogDirMoves
from barnabas.replication.log_importer import Handovers
from barnabas.replication.producer_ids import ProducerIds
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.security.authorizer import configured_authorizer
from barnabas.security.security_log import WINDOW_MS as SECURITY_LOG_WINDOW_MS
from barnabas.security.security_log import SecurityLog
from barnabas.server.audit_publisher import AuditPublisher
from barnabas.server.background.expiration import INTERVAL_MS as FORGETTING_INTERVAL_MS
from barnabas.server.background.expiration import Expiration
from barnabas.server.background.tasks import BackgroundTasks
from barnabas.server.coordinators import Coordinators
from barnabas.server.disk_space import CHECK_INTERVAL_MS, DiskWatch
from barnabas.server.listeners import Listeners, connection_limits, open_files_max
from barnabas.server.metrics import metrics_registry
from barnabas.server.policies import policy_settings
from barnabas.server.web import WebFactory, WebServer, http_hosts, site_of
from barnabas.stores.lock import StoreLock
from barnabas.stores.sqlite import SqliteStore
from barnabas.telemetry.http import MetricsServer
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.requests import RequestStatistics
from barnabas.telemetry.tracing import Tracer
from barnabas.transactions.found_producers import largest_producer_id

#: The embedded store's file, in `metadata.log.dir` or the first log directory.
STORE_FILE = "metadata.sqlite"

_log = get_logger("barnabas.server")


class BrokerServer:
    """One broker of an embedded cluster. `start`, serve, `stop`; all on one event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        first_users: Mapping[str, str] | None = None,
        web: WebFactory | None = None,
    ) -> None:
        """`first_users` are passwords of users to be added, by name; a user that there is stays as it is.

        `web` makes what serves pages beside the metrics; without it there are metrics alone.
        """
        check_listeners(config)
        self._dynamic_config = DynamicConfig(config)
        self._clock = clock or SystemClock()
        self._rng = rng or random.SystemRandom()
        self._first_users = dict(first_users or {})
        self._web = web
        self._metrics: WebServer | None = None
        self.serves_pages = False  #: beside the metrics
        #: What must be undone, the latest first: filled by `start` step by step, emptied by `stop`.
        self._undo = AsyncExitStack()
        self._abruptly = False
        #: No log directory is left, so that there is nothing to serve: Apache Kafka halts then.
        self.failed = asyncio.Event()

    async def start(self) -> None:
        """Open the store and the logs, then the listeners. What fails leaves nothing open.

        :raises StartError: When an address is in use or a directory is not ours to use.
        :raises LogDirectoryError: Likewise for log directories.
        :raises StoreError: When the metadata store cannot be read.
        :raises MalformedFile: When a `meta.properties` is damaged.
        :raises PolicyLoadError: When a policy cannot be had.
        """
        try:
            await self._start()
        except BaseException:
            await self.kill()  # logs that may not have been recovered must not be marked as clean
            raise

    async def _start(self) -> None:
        self.policies = Policies(policy_settings(self._config))
        await self.policies.load()
        self._undo.push_async_callback(self.policies.close)
        paths = [Path(directory) for directory in self._config.log_dirs]
        store_path = _store_path(self._config, paths)
        self._undo.callback(StoreLock(store_path.parent).release)
        self._store = SqliteStore(store_path)
        self._undo.push_async_callback(self._store.close)
        self._worker, decisions = Worker(), Worker()
        self._undo.callback(self._worker.close)
        self._undo.callback(decisions.close)
        audits = self._config.boolean("barnabas.audit.enable")
        self._metadata = MetadataWriter(
            self._store, Auditor(self._clock, self._rng) if audits else None, decisions
        )
        self._undo.push_async_callback(self._metadata.stop)
        await self._metadata.start()
        await self._metadata.write(lambda image: decide_keep_history(image, wanted=audits))
        self._dynamic_config.load(self._metadata.image)
        self._metadata.listen(self._dynamic_config.apply)
        self.cluster_id = await self._form(paths)
        await self._add_first_users()
        self._directories = await asyncio.to_thread(
            LogManager.open,
            paths,
            cluster_id=self.cluster_id,
            node_id=self._config.node_id,
            clock=self._clock,
            random=self._rng,
        )
        self._directories.cordons = lambda path: cordons(self._config, path)
        self._loop = asyncio.get_running_loop()
        self._directories.on_directory_failure = self._directory_failed
        self._undo.push_async_callback(self._close_directories)
        await self._load_replicas()
        self._assemble()
        self._undo.callback(self._tracer.close)
        self._undo.push_async_callback(self._flusher.close)
        self._undo.push_async_callback(self._stop_moves)
        self._undo.callback(self._log_worker.close)
        self._undo.push_async_callback(self.cleaner.stop)
        self._undo.push_async_callback(self.replacements.stop)
        self._undo.push_async_callback(self._housekeeping.stop)
        self._undo.push_async_callback(self._coordinators.stop)
        self._undo.callback(self._connections.abort_all)
        await self._listen()
        self._housekeeping.start()
        forgetting = Expiration(self._dynamic_config, self._clock, self._metadata, self._replicas.trash)
        self._housekeeping.repeat(forgetting.expire_history, FORGETTING_INTERVAL_MS)
        self._housekeeping.repeat(forgetting.empty_trash, FORGETTING_INTERVAL_MS)
        self._housekeeping.repeat(self.node.security_log.flush, SECURITY_LOG_WINDOW_MS)
        self._housekeeping.repeat(DiskWatch(paths, self._clock).watch, CHECK_INTERVAL_MS, 0)
        self._undo.push_async_callback(self._stop_audit)
        self.audit.start()
        if self._config.boolean("log.cleaner.enable"):
            self.cleaner.start()
        self.replacements.start()

    async def _form(self, paths: list[Path]) -> str:
        """The cluster's id: the store's, else what a log directory says, else a fresh one."""
        metas = (read_meta_properties(path) for path in paths if path.is_dir())
        found_id = next((meta.cluster_id for meta in metas if meta is not None), None)
        random_id, secret = self._rng.randbytes(16), self._rng.randbytes(SECRET_BYTES)
        return await self._metadata.write(
            lambda image: decide_form(image.cluster, random_id, found_id, secret)
        )

    async def _add_first_users(self) -> None:
        for user, password in self._first_users.items():
            await self._add_user(user, password)
        self._first_users.clear()

    async def _add_user(self, user: str, password: str) -> None:
        rng = self._rng
        added = await self._metadata.write(
            lambda image: decide_add_user(image.scram_credentials, user, password, rng)
        )
        _log.info("added a user" if added else "a user is there already and stays as it is", user=user)

    async def _load_replicas(self) -> None:
        config, directories = self._config, self._directories
        overrides = self._metadata.image.topic_configs
        threads_count = config.integer("num.recovery.threads.per.data.dir")
        image = self._metadata.image
        gone = {topic.topic_id for topic in image.deleted_topics.values()}
        await asyncio.to_thread(settle_trash, directories, image.topic_names, gone)
        await asyncio.to_thread(
            directories.load, lambda topic: log_config(config, overrides.get(topic, {})), threads_count
        )
        await self._adopt()
        self._replicas = ReplicaManager(
            config.node_id, directories, lambda topic, own: log_config(self._config, own)
        )
        forgotten = self._replicas.load(self._metadata.image)
        self._metadata.listen(self._replicas.apply)
        self._replicas.on_deleted = self._forget
        if forgotten:
            await self._metadata.write(lambda image: decide_forget(image, forgotten))

    async def _adopt(self) -> None:
        """Make topics of what a fresh store finds on the disks."""
        if self._metadata.image.topics:
            return
        logs = self._directories.logs
        found = [
            FoundLog(
                name.topic,
                log.topic_id,
                name.partition,
                max(
                    log.last_producer_id, largest_producer_id(log) if name.topic == TRANSACTION_TOPIC else -1
                ),
                -1 if log.latest_epoch is None else log.latest_epoch,
            )
            for name, log in logs.items()
            if log.topic_id is not None
        ]
        config = self._config
        adopted = await self._metadata.write(lambda image: decide_adopt(image, config.node_id, found, config))
        if adopted:
            _log.warning("took over topics found on disk", topics=adopted)

    def _directory_failed(self, _: LogDirectory) -> None:
        """See whether another directory is left. Any thread may call it."""
        if all(directory.failure is not None for directory in self._directories.directories):
            _log.error("no log directory is left: the broker cannot serve")
            self._loop.call_soon_threadsafe(self.failed.set)

    def _forget(self, topic_ids: list[bytes]) -> None:
        """The logs are renamed, which a crash cannot undo: the cluster need not remember the topics."""
        self._housekeeping.spawn(self._metadata.write(lambda image: decide_forget(image, topic_ids)))

    def _make_connections(self) -> Connections:
        config = self._config
        return Connections(
            self._clock,
            frame_bytes_max=config.integer("socket.request.max.bytes"),
            limits=connection_limits(config, open_files_max()),
            idle_ms_max=config.integer("connections.max.idle.ms"),
            send_buffer_bytes=config.integer("socket.send.buffer.bytes"),
            receive_buffer_bytes=config.integer("socket.receive.buffer.bytes"),
        )

    def _make_moves(self) -> LogDirMoves:
        config = self._config
        return LogDirMoves(
            self._replicas,
            self._flusher,
            self._clock,
            bytes_per_second=lambda: self._config.integer("replica.alter.log.dirs.io.max.bytes.per.second"),
            threads_count=config.integer_or_none("num.replica.alter.log.dirs.threads")
            or len(config.log_dirs),
        )

    async def _stop_audit(self) -> None:
        await self.audit.stop(abruptly=self._abruptly)

    async def _stop_moves(self) -> None:
        await self._moves.stop(abruptly=self._abruptly)
        await self._handovers.stop()

    def _assemble(self) -> None:
        config = self._config
        self._connections = self._make_connections()
        self._flusher = Flusher()
        self._moves = self._make_moves()
        self._handovers = Handovers(self._replicas.directories, self._clock)
        traces = config.boolean("barnabas.tracing.enable")
        self._tracer = Tracer.opentelemetry() if traces else Tracer.disabled()
        self._quotas = QuotaManager(config, self._clock)
        self._quotas.load(self._metadata.image)
        self._metadata.listen(self._quotas.apply)
        self._client_telemetry = ClientTelemetry(self._clock)
        self._client_telemetry.load(self._metadata.image)
        self._metadata.listen(self._client_telemetry.apply)
        self._make_coordinators()
        security_log = SecurityLog(self._clock)
        slots_count = config.integer("max.incremental.fetch.session.cache.slots")
        self.node = Node(
            broker_id=config.node_id,
            dynamic_config=self._dynamic_config,
            clock=self._clock,
            rng=self._rng,
            metadata=self._metadata,
            replicas=self._replicas,
            fetch_sessions=FetchSessionCache(slots_count, self._clock, self._rng),
            flusher=self._flusher,
            producer_ids=self._producer_ids,
            log_dir_moves=self._moves,
            handovers=self._handovers,
            tracer=self._tracer,
            policies=self.policies,
            apis=registry.build(barnabas.api),
            quotas=self._quotas,
            client_telemetry=self._client_telemetry,
            turns=Turns(self._clock.monotonic_ns),
            worker=self._worker,
            groups=self._coordinators.groups,
            transactions=self._coordinators.transactions,
            transaction_verifier=self._coordinators.verifier,
            authorizer=configured_authorizer(config, self._metadata, self._clock),
            security_log=security_log,
        )
        self.statistics = RequestStatistics()
        self.dispatcher = Dispatcher(self.node, self.statistics)
        self.audit = AuditPublisher(self.node)
        self._listeners = Listeners(
            self.dispatcher, self._connections, self._metadata, self._clock, self._rng, security_log
        )
        self._housekeeping = BackgroundTasks(
            self._dynamic_config,
            self._clock,
            self._directories,
            self._replicas,
            self._connections,
            self._flusher,
            self._quotas,
            self._client_telemetry.instances,
        )
        self._assemble_cleaner()
        self._dynamic_config.follow(self._reconfigure)

    def _assemble_cleaner(self) -> None:
        """Who writes segments anew, and who takes over what others have written anew."""

        def settings() -> CleanerSettings:
            return cleaner_settings(self._config)

        self._log_worker = LogWorker(self._directories, self._clock, lambda: settings().bytes_per_second)
        self.cleaner = LogCleaner(self._directories, self._clock, settings, self._log_worker)
        self.cleaner.on_replaced = self._housekeeping.remove_later
        self.replacements = Replacements(self._directories, self._clock, settings, self._log_worker)
        self.replacements.on_replaced = self._housekeeping.remove_later

    def _make_coordinators(self) -> None:
        config, metadata = self._dynamic_config, self._metadata
        self._producer_ids = ProducerIds(metadata)
        self._coordinators = Coordinators(
            lambda: config.current,
            lambda: metadata.image,
            self._replicas,
            self._flusher,
            self._clock,
            self._rng,
            self._producer_ids,
        )
        self._coordinators.follow(metadata)

    @property
    def _config(self) -> BrokerConfig:
        """What holds now; dynamic values from the moment the store is open."""
        return self._dynamic_config.current

    async def _reconfigure(self, before: BrokerConfig, after: BrokerConfig) -> None:
        """Hand on what others have copied."""
        self._connections.limits = connection_limits(after, open_files_max())
        await self._replicas.reconfigure_all()
        if before.items_or_none("cordoned.log.dirs") != after.items_or_none("cordoned.log.dirs"):
            self._housekeeping.spawn(self._register())

    async def _listen(self) -> None:
        self._undo.push_async_callback(self._listeners.stop)
        await self._listeners.start(self._config, self._dynamic_config.static)
        supported = supported_features(self.node.apis)
        await self._metadata.write(lambda image: decide_finalize(image.finalized_features, supported))
        await self._register()
        await self._serve_metrics()
        await asyncio.to_thread(self._directories.begin_service)  # all that can refuse to start has not
        self._moves.resume()
        await self._listeners.accept()
        self._listeners.on_changed = lambda: self._housekeeping.spawn(self._register_anew())
        self._dynamic_config.follow(self._listeners.follow)

    async def _register_anew(self) -> None:
        """Serve on new listeners once the cluster knows of them: clients ask there for brokers first."""
        await self._register()
        await self._listeners.accept()

    async def _register(self) -> None:
        """Tell the cluster how this broker is reached."""
        log_dirs = tuple(directory.directory_id for directory in self._directories.directories)
        rack = self._config.text_or_none("broker.rack")
        cordoned = all(map(self._directories.is_cordoned, self._directories.directories))
        broker = BrokerRegistration(
            self._config.node_id, self._listeners.endpoints, rack, log_dirs, cordoned=cordoned
        )
        await self._metadata.write(lambda image: decide_register(image.brokers, broker))

    async def _serve_metrics(self) -> None:
        address = self._config.text("barnabas.metrics.listener")
        if not address:
            return
        metrics = metrics_registry(
            self.node,
            self.statistics,
            self._connections,
            self._listeners,
            self._directories,
            self.cleaner,
            self.replacements,
            self._coordinators,
            self.audit,
        )
        site = site_of(self._config, self.addresses, metrics) if self._web is not None else None
        self.serves_pages = site is not None
        if self._web is not None and site is not None:
            self._metrics = self._web(site)
        else:
            self._metrics = MetricsServer(metrics, address, http_hosts(self._config))
        try:
            await self._metrics.start()
        except OSError as error:
            why = reason_of(error)
            message = (
                f"Metrics cannot be served on {address}: {why}. Choose another barnabas.metrics.listener."
            )
            raise StartError(message) from error
        self._undo.push_async_callback(self._metrics.close)

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """(listener name, host, port) of every open listener, ports as bound."""
        return self._listeners.addresses

    @property
    def metrics_port(self) -> int | None:
        """The port of /metrics; None when it is not served."""
        return self._metrics.port if self._metrics else None

    async def stop(self) -> None:
        """Stop serving, put everything on disk and mark it as cleanly stopped."""
        await self._undo.aclose()

    async def kill(self) -> None:
        """Stop as a killed process does: nothing more is written, nothing marked as cleanly stopped."""
        self._abruptly = True
        await self._undo.aclose()

    async def _close_directories(self) -> None:
        if not self._abruptly:
            await asyncio.to_thread(self._directories.close)
            return
        for directory in self._directories.directories:
            for log in (*directory.logs.values(), *directory.futures.values()):
                log.abandon()
            directory.unlock()


def _store_path(config: BrokerConfig, paths: list[Path]) -> Path:
    directory = Path(config.text_or_none("metadata.log.dir") or paths[0])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / STORE_FILE
        path.touch(0o600)  # credentials are in it
    except OSError as error:
        message = f"Directory {directory} cannot be written to: {error.strerror}. Choose another with --data."
        raise StartError(message) from error
    return path
