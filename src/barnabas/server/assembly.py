"""The composition root: creates and connects the parts of a broker.

`barnabas serve`, the embedded broker and the nodes of unit tests are all assembled here. Tests replace the store, the
clock and the source of random numbers.
"""

import asyncio
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import barnabas.api
from barnabas.api import registry
from barnabas.api.context import BrokerContext
from barnabas.api.dispatch import Dispatcher
from barnabas.base.clock import Clock
from barnabas.base.ids import TopicIdPartition
from barnabas.base.turns import Turns
from barnabas.base.worker import Worker
from barnabas.config.broker_config import BrokerConfig
from barnabas.log.compaction.cleaner import CleanerSettings, LogCleaner
from barnabas.log.compaction.log_worker import LogWorker
from barnabas.log.log_manager import LogManager
from barnabas.metadata.audit.auditor import Auditor
from barnabas.metadata.audit.history import decide_keep_history
from barnabas.metadata.broker_times import BrokerTimes
from barnabas.metadata.client_metrics import ClientTelemetry
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.election_rules import ElectionRules, election_rules
from barnabas.metadata.internal_topics import internal_topic
from barnabas.metadata.store import Store
from barnabas.metadata.writer import MetadataWriter
from barnabas.net.connections import Connections
from barnabas.policy.policies import Policies
from barnabas.quotas.manager import QuotaManager, windows_of
from barnabas.replication.deletion_reporter import DeletionReporter
from barnabas.replication.fetch_sessions import FetchSessionCache
from barnabas.replication.flusher import Flusher
from barnabas.replication.follower_sessions import FollowerSessions
from barnabas.replication.isr_manager import IsrManager
from barnabas.replication.log_configs import cleaner_settings
from barnabas.replication.log_dir_moves import LogDirMoves
from barnabas.replication.partition import Partition
from barnabas.replication.producer_ids import ProducerIds
from barnabas.replication.replica_fetcher import FetchSettings
from barnabas.replication.replica_fetchers import ReplicaFetchers
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.replica_reporter import ReplicaReporter
from barnabas.replication.segment_importer import SegmentImporter
from barnabas.replication.throttle import ReplicationThrottle
from barnabas.security.python_authorizer import configured_authorizer
from barnabas.security.security_log import SecurityLog
from barnabas.server.audit_publisher import AuditPublisher
from barnabas.server.background.tasks import BackgroundTasks
from barnabas.server.broker_clients import BrokerClients, open_broker_clients
from barnabas.server.controller import Controller
from barnabas.server.coordinators import Coordinators
from barnabas.server.failure_detector import FailureDetector
from barnabas.server.listeners import Listeners, connection_limits, open_files_max
from barnabas.server.metadata_comparison import MetadataComparison
from barnabas.server.security_log_publisher import SecurityLogPublisher
from barnabas.server.shutdown import Shutdown
from barnabas.server.startup import form_cluster, load_replicas, open_log_manager
from barnabas.server.stores import metadata_directory
from barnabas.telemetry.byte_rates import ByteRates
from barnabas.telemetry.requests import RequestStatistics
from barnabas.telemetry.tracing import Tracer


@dataclass(frozen=True, slots=True)
class Environment:
    """The dependencies that a broker gets from its caller."""

    store: Store
    clock: Clock
    rng: random.Random


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """The parts of one broker.

    Metadata and replicas run already. `BrokerServer` opens listeners, and starts coordinators and background work.
    """

    environment: Environment
    dynamic_config: DynamicConfig
    metadata: MetadataWriter
    log_manager: LogManager
    replicas: ReplicaManager
    lost_replicas: frozenset[TopicIdPartition]  #: those whose log directory is missing
    flusher: Flusher
    controller: Controller
    failure_detector: FailureDetector
    broker_clients: BrokerClients
    replica_fetchers: ReplicaFetchers
    isr_manager: IsrManager
    replica_reporter: ReplicaReporter
    deletion_reporter: DeletionReporter
    metadata_comparison: MetadataComparison
    coordinators: Coordinators
    cleaner: LogCleaner
    connections: Connections
    background_tasks: BackgroundTasks
    statistics: RequestStatistics
    broker: BrokerContext
    dispatcher: Dispatcher
    listeners: Listeners
    audit: AuditPublisher
    security_log: SecurityLogPublisher


async def assemble(
    config: BrokerConfig, environment: Environment, policies: Policies, shutdown: Shutdown
) -> BrokerParts:
    """Load metadata and logs, and create all parts on top of them; add their closing to `shutdown`.

    :raises LogDirectoryError: If a log directory cannot be used.
    :raises StoreError: If the metadata store cannot be read.
    :raises MalformedFile: If a `meta.properties` is damaged.
    """
    clock, rng = environment.clock, environment.rng
    storage = await _open_storage(config, environment, shutdown)
    producer_ids = ProducerIds(storage.metadata)
    coordinators = _coordinators(storage, environment, producer_ids, shutdown)
    statistics = RequestStatistics()
    replica_fetchers = _replica_fetchers(storage, clock, shutdown)
    broker = _broker_context(
        storage, coordinators, producer_ids, replica_fetchers, environment, policies, statistics, shutdown
    )
    connections = _connections(config, clock)
    background_tasks = BackgroundTasks(
        storage.dynamic_config,
        clock,
        storage.log_manager,
        storage.replicas,
        connections,
        storage.flusher,
        broker.quotas,
        broker.client_telemetry.instances,
    )
    shutdown.add_async(background_tasks.stop)
    dispatcher = Dispatcher(broker, statistics)
    return BrokerParts(
        environment=environment,
        cleaner=_cleaner(storage, clock, background_tasks, shutdown),
        dynamic_config=storage.dynamic_config,
        metadata=storage.metadata,
        log_manager=storage.log_manager,
        replicas=storage.replicas,
        lost_replicas=storage.lost_replicas,
        flusher=storage.flusher,
        controller=_controller(config, storage, shutdown),
        failure_detector=_failure_detector(storage, clock, shutdown),
        broker_clients=storage.broker_clients,
        replica_fetchers=replica_fetchers,
        isr_manager=_isr_manager(storage, clock, shutdown),
        replica_reporter=_replica_reporter(storage, replica_fetchers, shutdown),
        deletion_reporter=_deletion_reporter(storage, shutdown),
        metadata_comparison=MetadataComparison(
            config.node_id, storage.metadata, storage.broker_clients.requests
        ),
        coordinators=coordinators,
        connections=connections,
        background_tasks=background_tasks,
        statistics=statistics,
        broker=broker,
        dispatcher=dispatcher,
        listeners=Listeners(dispatcher, connections, storage.metadata, clock, rng, broker.security_log),
        audit=AuditPublisher(broker),
        security_log=SecurityLogPublisher(broker, storage.broker_clients.requests),
    )


class _Storage(NamedTuple):
    """Metadata and logs, which everything else is built on."""

    dynamic_config: DynamicConfig
    metadata: MetadataWriter
    log_manager: LogManager
    replicas: ReplicaManager
    lost_replicas: frozenset[TopicIdPartition]
    flusher: Flusher
    broker_clients: BrokerClients

    @property
    def election_rules(self) -> ElectionRules:
        return election_rules(self.dynamic_config, lambda: self.metadata.image)


async def _open_storage(config: BrokerConfig, environment: Environment, shutdown: Shutdown) -> _Storage:
    clock, rng = environment.clock, environment.rng
    dynamic_config = DynamicConfig(config)
    metadata = await _open_metadata(dynamic_config, environment, shutdown)
    cluster_id = await form_cluster(config, metadata, rng)
    log_manager = await open_log_manager(dynamic_config, cluster_id, clock, rng)

    async def close_logs() -> None:
        await asyncio.to_thread(log_manager.abandon if shutdown.is_abrupt else log_manager.close)

    shutdown.add_async(close_logs)
    flusher = Flusher()
    shutdown.add_async(flusher.close)
    replicas, lost = await load_replicas(dynamic_config, metadata, log_manager, flusher)
    clients = open_broker_clients(dynamic_config, metadata, clock, shutdown)
    return _Storage(dynamic_config, metadata, log_manager, replicas, lost, flusher, clients)


async def _open_metadata(
    dynamic_config: DynamicConfig, environment: Environment, shutdown: Shutdown
) -> MetadataWriter:
    """Read the store; the dynamic configuration follows the image from then on."""
    clock, rng = environment.clock, environment.rng
    audits = dynamic_config.static.boolean("barnabas.audit.enable")
    # Its own, because other long requests must not delay the replay of commits; one thread can decide meanwhile.
    worker = _worker("large-metadata", shutdown, threads_count=2)
    metadata = MetadataWriter(
        environment.store, Auditor(clock, rng) if audits else None, worker, writer_id=rng.randbytes(8).hex()
    )
    shutdown.add_async(metadata.stop)
    await metadata.start()
    is_done = False
    while not is_done:
        is_done = await metadata.write(
            lambda image: decide_keep_history(image, enabled=audits, at_once_max=metadata.partitions_max)
        )
    dynamic_config.load(metadata.image)
    metadata.listen(dynamic_config.apply)
    return metadata


def _worker(thread_name: str, shutdown: Shutdown, threads_count: int = 1) -> Worker:
    worker = Worker(thread_name, threads_count)
    shutdown.add(worker.close)
    return worker


def _tracer(config: BrokerConfig, shutdown: Shutdown) -> Tracer:
    tracer = Tracer.opentelemetry() if config.boolean("barnabas.tracing.enable") else Tracer.disabled()
    shutdown.add(tracer.close)
    return tracer


def _coordinators(
    storage: _Storage, environment: Environment, producer_ids: ProducerIds, shutdown: Shutdown
) -> Coordinators:
    """Create the coordinators; `BrokerServer` starts them."""
    coordinators = Coordinators(
        lambda: storage.dynamic_config.current,
        lambda: storage.metadata.image,
        storage.replicas,
        storage.flusher,
        environment.clock,
        environment.rng,
        producer_ids,
        broker_client=storage.broker_clients.requests,
        marker_client=storage.broker_clients.markers,
        offsets_client=storage.broker_clients.offsets,
    )
    shutdown.add_async(coordinators.stop)
    return coordinators


def _replica_fetchers(storage: _Storage, clock: Clock, shutdown: Shutdown) -> ReplicaFetchers:
    def settings() -> FetchSettings:
        integer = storage.dynamic_config.current.integer
        return FetchSettings(
            integer("replica.fetch.wait.max.ms"),
            integer("replica.fetch.max.bytes"),
            integer("replica.fetch.response.max.bytes"),
            integer("replica.fetch.backoff.ms"),
        )

    broker_id = storage.dynamic_config.static.node_id
    throttle = _throttle(
        storage, clock, "follower", lambda partition: partition.log.config.follower_throttled_replicas
    )
    replicas, client = storage.replicas, storage.broker_clients.fetches
    fetchers = ReplicaFetchers(broker_id, replicas, client, clock, settings, throttle, storage.flusher)
    storage.metadata.listen(fetchers.apply)
    shutdown.add_async(fetchers.stop)
    return fetchers


def _throttle(
    storage: _Storage, clock: Clock, role: str, replicas: Callable[[Partition], Collection[str]]
) -> ReplicationThrottle:
    config = storage.dynamic_config
    return ReplicationThrottle(
        clock,
        windows_of(config.static, "replication.quota.window"),
        lambda: config.current.integer(f"{role}.replication.throttled.rate"),
        replicas,
    )


def _isr_manager(storage: _Storage, clock: Clock, shutdown: Shutdown) -> IsrManager:
    manager = IsrManager(
        storage.dynamic_config.static.node_id,
        storage.replicas,
        storage.metadata,
        clock,
        lambda: storage.dynamic_config.current.integer("replica.lag.time.max.ms"),
        storage.election_rules,
    )
    shutdown.add_async(manager.stop)
    return manager


def _replica_reporter(storage: _Storage, fetchers: ReplicaFetchers, shutdown: Shutdown) -> ReplicaReporter:
    broker_id = storage.dynamic_config.static.node_id
    reporter = ReplicaReporter(
        broker_id, storage.replicas, fetchers, storage.metadata, storage.election_rules
    )
    shutdown.add_async(reporter.stop)
    return reporter


def _deletion_reporter(storage: _Storage, shutdown: Shutdown) -> DeletionReporter:
    broker_id = storage.dynamic_config.static.node_id
    reporter = DeletionReporter(broker_id, storage.replicas, storage.log_manager, storage.metadata)
    shutdown.add_async(reporter.stop)
    return reporter


def _broker_context(
    storage: _Storage,
    coordinators: Coordinators,
    producer_ids: ProducerIds,
    replica_fetchers: ReplicaFetchers,
    environment: Environment,
    policies: Policies,
    statistics: RequestStatistics,
    shutdown: Shutdown,
) -> BrokerContext:
    config, metadata = storage.dynamic_config.static, storage.metadata
    clock, rng = environment.clock, environment.rng
    return BrokerContext(
        broker_id=config.node_id,
        dynamic_config=storage.dynamic_config,
        clock=clock,
        rng=rng,
        metadata=metadata,
        replicas=storage.replicas,
        fetch_sessions=FetchSessionCache(
            config.integer("max.incremental.fetch.session.cache.slots"), clock, rng
        ),
        follower_sessions=_follower_sessions(storage, clock, rng, shutdown),
        flusher=storage.flusher,
        producer_ids=producer_ids,
        log_dir_moves=_log_dir_moves(storage, clock, shutdown),
        segment_importer=_segment_importer(storage.log_manager, clock, shutdown),
        tracer=_tracer(config, shutdown),
        policies=policies,
        apis=registry.build(barnabas.api),
        quotas=_quotas(storage.dynamic_config, metadata, clock),
        client_telemetry=_client_telemetry(metadata, clock),
        turns=Turns(clock.monotonic_ns),
        worker=_worker("large-requests", shutdown),
        record_worker=_worker("records", shutdown, threads_count=2),
        groups=coordinators.groups,
        cluster_offsets=coordinators.offsets,
        transactions=coordinators.transactions,
        transaction_verifier=coordinators.verifier,
        authorizer=configured_authorizer(config, metadata, policies, clock, metadata_directory(config)),
        security_log=SecurityLog(clock),
        broker_times=_broker_times(metadata, clock),
        byte_rates=ByteRates(statistics, clock.monotonic_ms),
        expects_election=replica_fetchers.expects_election,
    )


def _follower_sessions(
    storage: _Storage, clock: Clock, rng: random.Random, shutdown: Shutdown
) -> FollowerSessions:
    throttle = _throttle(
        storage, clock, "leader", lambda partition: partition.log.config.leader_throttled_replicas
    )
    sessions = FollowerSessions(storage.replicas, throttle, rng)
    shutdown.add(sessions.close)
    return sessions


def _log_dir_moves(storage: _Storage, clock: Clock, shutdown: Shutdown) -> LogDirMoves:
    dynamic_config = storage.dynamic_config
    config = dynamic_config.static
    moves = LogDirMoves(
        storage.replicas,
        storage.flusher,
        clock,
        bytes_per_second=lambda: dynamic_config.current.integer(
            "replica.alter.log.dirs.io.max.bytes.per.second"
        ),
        threads_count=config.integer_or_none("num.replica.alter.log.dirs.threads") or len(config.log_dirs),
    )
    shutdown.add_async(lambda: moves.stop(abruptly=shutdown.is_abrupt))
    return moves


def _segment_importer(log_manager: LogManager, clock: Clock, shutdown: Shutdown) -> SegmentImporter:
    importer = SegmentImporter(log_manager, clock)
    shutdown.add_async(importer.stop)
    return importer


def _quotas(dynamic_config: DynamicConfig, metadata: MetadataWriter, clock: Clock) -> QuotaManager:
    quotas = QuotaManager(dynamic_config.current, clock)
    quotas.load(metadata.image)
    metadata.listen(quotas.apply)
    return quotas


def _client_telemetry(metadata: MetadataWriter, clock: Clock) -> ClientTelemetry:
    client_telemetry = ClientTelemetry(clock)
    client_telemetry.load(metadata.image)
    metadata.listen(client_telemetry.apply)
    return client_telemetry


def _broker_times(metadata: MetadataWriter, clock: Clock) -> BrokerTimes:
    times = BrokerTimes(clock)
    metadata.listen(times.apply)
    return times


def _connections(config: BrokerConfig, clock: Clock) -> Connections:
    return Connections(
        clock,
        frame_bytes_max=config.integer("socket.request.max.bytes"),
        limits=connection_limits(config, open_files_max()),
        idle_ms_max=config.integer("connections.max.idle.ms"),
        send_buffer_bytes=config.integer("socket.send.buffer.bytes"),
        receive_buffer_bytes=config.integer("socket.receive.buffer.bytes"),
    )


def _controller(config: BrokerConfig, storage: _Storage, shutdown: Shutdown) -> Controller:
    def replication_factor(topic: str, brokers_count: int) -> int:
        return internal_topic(topic, config, brokers_count).replication_factor

    rebalances = config.boolean("auto.leader.rebalance.enable")
    interval_s = config.integer("leader.imbalance.check.interval.seconds") if rebalances else None
    rules = storage.election_rules
    controller = Controller(config.node_id, storage.metadata, replication_factor, rules, interval_s)
    shutdown.add_async(controller.stop)
    return controller


def _failure_detector(storage: _Storage, clock: Clock, shutdown: Shutdown) -> FailureDetector:
    broker_id = storage.dynamic_config.static.node_id
    detector = FailureDetector(broker_id, storage.metadata, storage.broker_clients.probes, clock)
    shutdown.add_async(detector.stop)
    return detector


def _cleaner(
    storage: _Storage, clock: Clock, background_tasks: BackgroundTasks, shutdown: Shutdown
) -> LogCleaner:
    def settings() -> CleanerSettings:
        return cleaner_settings(storage.dynamic_config.current)

    log_manager = storage.log_manager
    worker = LogWorker(log_manager, clock, lambda: settings().bytes_per_second)
    shutdown.add(worker.close)
    cleaner = LogCleaner(log_manager, clock, settings, worker)
    cleaner.on_replaced = background_tasks.remove_later
    shutdown.add_async(cleaner.stop)
    return cleaner
