"""The first steps of a start: form the cluster, open the log directories, and load the replicas from them."""

import asyncio
import random
from pathlib import Path
from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicIdPartition, TopicPartition
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.class_names import REPLICA_SELECTOR_KEY, SELECTS_BY_RACK
from barnabas.log.log_manager import LogManager
from barnabas.log.segments.open_files import maps_max
from barnabas.log.startup.meta_properties import read_meta_properties
from barnabas.log.trash.trash import reconcile_trash
from barnabas.metadata.cluster import SECRET_BYTES, decide_form
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.flusher import Flusher
from barnabas.replication.log_configs import cordons, log_config
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.server.listeners import open_files_max
from barnabas.server.metadata_recovery import recover_metadata
from barnabas.telemetry.logs import get_logger

_log = get_logger("barnabas.server")


async def form_cluster(config: BrokerConfig, metadata: MetadataWriter, rng: random.Random) -> str:
    """Return the cluster id: that of the store, else that of a log directory, else a new one."""
    paths = (Path(directory) for directory in config.log_dirs)
    metas = (read_meta_properties(path) for path in paths if path.is_dir())
    found_id = next((meta.cluster_id for meta in metas if meta is not None), None)
    random_id, secret = rng.randbytes(16), rng.randbytes(SECRET_BYTES)
    return await metadata.write(lambda image: decide_form(image.cluster, random_id, found_id, secret))


async def open_log_manager(
    dynamic_config: DynamicConfig, cluster_id: str, clock: Clock, rng: random.Random
) -> LogManager:
    config = dynamic_config.static
    log_manager = await asyncio.to_thread(
        LogManager.open,
        [Path(directory) for directory in config.log_dirs],
        cluster_id=cluster_id,
        node_id=config.node_id,
        clock=clock,
        random=rng,
        maps_max=maps_max(open_files_max()),
    )
    log_manager.cordons = lambda path: cordons(dynamic_config.current, path)
    return log_manager


class LoadedReplicas(NamedTuple):
    """The replicas of this broker, and those of which it has lost the records."""

    replicas: ReplicaManager
    lost: frozenset[TopicIdPartition]


async def load_replicas(
    dynamic_config: DynamicConfig, metadata: MetadataWriter, log_manager: LogManager, flusher: Flusher
) -> LoadedReplicas:
    """Recover the logs, and return the replicas of this broker; they follow the image and the configuration."""
    config, image = dynamic_config.current, metadata.image
    overrides = image.topic_configs
    deleted = {topic.topic_id for topic in image.deleted_topics.values()}
    await asyncio.to_thread(reconcile_trash, log_manager, image.topic_names, deleted)
    await asyncio.to_thread(
        log_manager.load,
        lambda topic: log_config(config, overrides.get(topic, {})),
        config.integer("num.recovery.threads.per.data.dir"),
    )
    await recover_metadata(config, metadata, log_manager)
    log_manager.metadata_revision = lambda: metadata.image.revision
    lost = lost_replicas(metadata.image, config.node_id, log_manager)
    replicas = ReplicaManager(
        config.node_id,
        log_manager,
        lambda topic, own: log_config(dynamic_config.current, own),
        flusher.flush_soon,
    )
    replicas.serves_consumers_of_followers = config.part(REPLICA_SELECTOR_KEY) == SELECTS_BY_RACK
    await _complete_trash(replicas, metadata, image)
    replicas.load(metadata.image, lost)
    metadata.listen(replicas.apply)

    async def reconfigure(before: BrokerConfig, after: BrokerConfig) -> None:
        await replicas.reconfigure_all()

    dynamic_config.on_change(reconfigure)
    await flusher.complete()  # else high watermarks would be lower than before a crash (flush.messages)
    return LoadedReplicas(replicas, lost)


async def _complete_trash(replicas: ReplicaManager, metadata: MetadataWriter, before: MetadataImage) -> None:
    """Restore or purge the logs of topics that left the trash while logs were loaded, which may take minutes.

    :param before: The image with which the trash was reconciled.
    """
    left = set(before.trashed_topics)
    purged = left.intersection(metadata.image.deleted_topics)
    await asyncio.to_thread(replicas.trash.purge, [bytes.fromhex(row) for row in purged])
    while restored := [topic for topic in metadata.image.topics.values() if topic.topic_id.hex() in left]:
        for topic in restored:
            left.discard(topic.topic_id.hex())
            await replicas.restore(metadata.image, topic)


def lost_replicas(
    image: MetadataImage, broker_id: int, log_manager: LogManager
) -> frozenset[TopicIdPartition]:
    """Return the replicas without a log, if the broker no longer has a log directory that it had at its last start.

    If it has all of them, replicas without a log were assigned to it after it had stopped. If it was unregistered, its
    directories are not known, and a replica that it still has may have been in another one. After the restoration of a
    backup, none of the brokers has all of its directories.
    """
    broker = image.brokers.get(str(broker_id))
    present = {directory.directory_id for directory in log_manager.directories}
    has_all = broker is not None and present.issuperset(broker.log_dirs)
    if has_all or log_manager.any_offline:
        return frozenset()
    lost = frozenset(
        TopicIdPartition(topic.topic_id, index)
        for topic in image.topics.values()
        for index in range(topic.partition_count)
        if broker_id in image.partition(topic, index).replicas
        and log_manager.get(TopicPartition(topic.name, index)) is None
    )
    if lost:
        _log.error(
            "replicas have no logs: a log directory is missing, or a backup of the metadata is older than a move or a "
            "deletion; partitions without another in-sync replica have no leader until "
            "`barnabas elections --unclean`, which makes them empty",
            replicas_count=len(lost),
        )
    return lost


def directories_to_register(
    image: MetadataImage, broker_id: int, log_manager: LogManager
) -> tuple[bytes, ...]:
    """Return the ids of the log directories.

    While one is offline, those that the broker no longer has stay registered: a replica without a log may have been in
    either, and a later start must find it lost.
    """
    present = tuple(directory.directory_id for directory in log_manager.directories)
    broker = image.brokers.get(str(broker_id))
    if broker is None or not log_manager.any_offline:
        return present
    return (*present, *(each for each in broker.log_dirs if each not in present))
