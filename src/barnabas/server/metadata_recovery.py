"""What the logs on disk show, and the metadata lack.

A new store lacks the topics. A restored backup is older than the logs: it lacks leader epochs and producer ids.
"""

import asyncio
import sys
from collections.abc import Mapping
from functools import partial

from barnabas.base.ids import TopicIdPartition, TopicPartition
from barnabas.base.topic_names import TRANSACTION_TOPIC
from barnabas.config.broker_config import BrokerConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.restored_backup import (
    decide_add_lost_log_dirs,
    decide_continue_epochs,
    decide_continue_producer_ids,
    is_newer,
    newer_epochs,
)
from barnabas.metadata.topic_recovery import FoundLog, decide_recover_topics
from barnabas.metadata.writer import MetadataWriter
from barnabas.telemetry.logs import get_logger
from barnabas.transactions.found_producers import largest_producer_id
from barnabas.wire.codec import DecodeError
from barnabas.wire.errors import KafkaError

#: The revision in the log directories while epochs are being raised: every store is older.
_UNFINISHED = sys.maxsize

_log = get_logger("barnabas.server")


async def recover_metadata(config: BrokerConfig, metadata: MetadataWriter, log_manager: LogManager) -> None:
    """Complete the metadata with what the loaded logs show, before the broker leads or follows a partition."""
    image = metadata.image
    if not (image.topics or image.deleted_topics or image.trashed_topics):
        await _recover_topics(config, metadata, log_manager)
    elif _is_older_than_logs(image, _known_revision(log_manager), log_manager.logs):
        await _continue_after_logs(metadata, log_manager)


async def _recover_topics(config: BrokerConfig, metadata: MetadataWriter, log_manager: LogManager) -> None:
    """Create topics for the logs that a new metadata store finds on the disks."""
    logs = await asyncio.to_thread(_found_logs, log_manager)
    topics = await metadata.write(lambda image: decide_recover_topics(image, config.node_id, logs, config))
    if topics:
        _log.warning(
            "recovered topics from logs on disk, because the metadata store had no topics", topics=topics
        )


def _known_revision(log_manager: LogManager) -> int:
    """Return the latest revision of the metadata that the log directories know; -1 if they know none."""
    revisions = [-1]
    for directory in log_manager.directories:
        if directory.failure is None:
            with log_manager.offline_on_error(directory):
                revisions.append(directory.read_metadata_revision())
    return max(revisions)


def _is_older_than_logs(
    image: MetadataImage, known_revision: int, logs: Mapping[TopicPartition, PartitionLog]
) -> bool:
    """Whether a backup of the metadata was restored."""
    return known_revision > image.revision or any(
        is_newer(image, log.topic_id, tp.partition, log.latest_epoch)
        for tp, log in logs.items()
        if log.topic_id is not None and log.latest_epoch is not None
    )


async def _continue_after_logs(metadata: MetadataWriter, log_manager: LogManager) -> None:
    """Begin leader epochs and producer ids that are later than those in the logs; replicas without a log are lost.

    This changes all partitions, because its commits hide from other brokers that the metadata went back. If it is
    interrupted, the next start does it again.
    """
    image = metadata.image
    for directory in log_manager.directories:
        if directory.failure is None:
            with log_manager.offline_on_error(directory):
                await asyncio.to_thread(directory.write_metadata_revision, _UNFINISHED, sync=True)
    found = await asyncio.to_thread(_found_logs, log_manager)
    _log.warning(
        "the metadata is older than the logs, as after the restoration of a backup: leader epochs and producer ids "
        "continue after those in the logs",
        revision=image.revision,
        logs_count=len(found),
    )
    await metadata.write(decide_add_lost_log_dirs)
    await metadata.write(lambda image: decide_continue_producer_ids(image, found))
    newer = newer_epochs(image, found)
    partitions = [
        TopicIdPartition(topic.topic_id, index)
        for topic in image.topics.values()
        for index in range(topic.partition_count)
    ]
    limit = metadata.partitions_max
    for first in range(0, len(partitions), limit):
        part = partitions[first : first + limit]
        await metadata.write(partial(decide_continue_epochs, partitions=part, newer=newer), is_large=True)


def _found_logs(log_manager: LogManager) -> list[FoundLog]:
    """Describe all logs. Blocks: reads those of transaction coordinators."""
    return [
        FoundLog(
            tp.topic,
            log.topic_id,
            tp.partition,
            _largest_producer_id(tp, log),
            -1 if log.latest_epoch is None else log.latest_epoch,
        )
        for tp, log in log_manager.logs.items()
        if log.topic_id is not None
    ]


def _largest_producer_id(tp: TopicPartition, log: PartitionLog) -> int:
    largest = log.producers.last_producer_id
    if tp.topic == TRANSACTION_TOPIC:
        try:
            largest = max(largest, largest_producer_id(log))
        except (KafkaError, DecodeError) as error:
            _log.error("cannot read the producer ids in a log", partition=str(tp), why=str(error))
    return largest
