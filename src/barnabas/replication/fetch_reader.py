"""Reads the partitions of one fetch within its limits (KIP-74)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.replication.fetch_targets import NO_REPLICA, EndOfEpoch, FetchedPartition, FetchTarget, Key
from barnabas.replication.partition import NO_EPOCH, Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import first_is_whole

#: After this many bytes a response only uses views of the segments, so that responses which slow clients have not read
#: yet need little memory.
COPIED_READS_BYTES_MAX = 256 << 10

#: (partition, fetch offset) -> the broker that the consumer should fetch from; `NO_REPLICA` for this one (KIP-392).
PreferredReplica: TypeAlias = Callable[[Partition, int], int]

_NO_LOG = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


@dataclass(slots=True)
class Reads:
    """The results of reading."""

    results: list[tuple[Key, FetchTarget, FetchedPartition]]
    size_bytes: int = 0
    aborted_count: int = 0  #: aborted transactions of all partitions
    unknown_count: int = 0  #: partitions that are unknown in the cluster; the fetch may wait for the others
    #: another error, a diverging epoch or another replica, so that the fetch must not wait for more data
    must_respond: bool = False


def read_all(
    replicas: ReplicaManager,
    targets: Iterable[tuple[Key, FetchTarget]],
    max_bytes: int,
    *,
    read_committed: bool,
    is_incremental: bool = False,
    from_followers: bool = False,
    preferred_replica: PreferredReplica | None = None,
    reads: Reads | None = None,
) -> Reads:
    """Read from the targets in order until `max_bytes` are reached; `reads` contains earlier results.

    The first batch is read whole, however large it is, so that a fetch always makes progress. An incremental fetch
    leaves out the targets of which its session has nothing new to report (KIP-227).

    :param from_followers: Whether partitions that this broker does not lead may be read, too.
    """
    reads = Reads([]) if reads is None else reads
    for key, target in targets:
        remaining_bytes = max_bytes - reads.size_bytes
        try:
            partition = partition_of(replicas, target)
            epoch = max(NO_EPOCH, target.leader_epoch)  # any negative epoch means none, as in Kafka's fetch
            if from_followers:
                partition.check_epoch(epoch)
            else:
                partition.check_leader(epoch)
            replica = NO_REPLICA
            if preferred_replica is not None and partition.is_leader:
                replica = preferred_replica(partition, target.fetch_offset)
            if replica != NO_REPLICA:
                data = _redirected(partition, target.index, replica)
            elif is_incremental and _is_unchanged(partition, target, read_committed=read_committed):
                continue
            else:
                data = _read(
                    partition, target, remaining_bytes, reads.size_bytes, read_committed=read_committed
                )
        except KafkaError as error:
            data = error_partition(target.index, error.code)
        if data.error_code or data.diverging_epoch is not None or data.preferred_read_replica != NO_REPLICA:
            if data.error_code in _NO_LOG:
                reads.unknown_count += 1
            else:
                reads.must_respond = True
        elif data.records:
            reads.size_bytes += len(data.records)
            reads.aborted_count += len(data.aborted_transactions or ())
        reads.results.append((key, target, data))
    return reads


def error_partition(index: int, code: ErrorCode) -> FetchedPartition:
    """Return the result of a partition with an error: only the error code is set.

    As in Apache Kafka, aborted transactions are null if the error comes from the log, and empty if there is no log.
    """
    return FetchedPartition(index, code, aborted_transactions=[] if code in _NO_LOG else None)


def _redirected(partition: Partition, index: int, replica: int) -> FetchedPartition:
    """Return the result without records that sends a consumer to another replica."""
    log = partition.log
    return FetchedPartition(
        index,
        ErrorCode.NONE,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        preferred_read_replica=replica,
    )


def _is_unchanged(partition: Partition, target: FetchTarget, *, read_committed: bool) -> bool:
    """Return whether there is nothing to read, and the session has sent the log start offset and high watermark."""
    log = partition.log
    return (
        target.fetch_offset == (log.last_stable_offset if read_committed else log.high_watermark)
        and target.sent_high_watermark == log.high_watermark
        and target.sent_log_start_offset == log.log_start_offset
        and target.last_fetched_epoch < 0
        and log.failure is None
    )


def _read(
    partition: Partition, target: FetchTarget, remaining_bytes: int, read_bytes: int, *, read_committed: bool
) -> FetchedPartition:
    log = partition.log
    data = FetchedPartition(
        target.index,
        ErrorCode.NONE,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        [] if read_committed else None,
    )
    data.diverging_epoch = find_divergence(partition, target.last_fetched_epoch, target.fetch_offset)
    if data.diverging_epoch is not None:
        data.aborted_transactions = None  # nothing was read
        return data
    size_bytes = min(target.max_bytes, remaining_bytes)
    log_slice = partition.read(
        target.fetch_offset,
        size_bytes,
        read_committed=read_committed,
        min_one_batch=read_bytes == 0,
        may_copy=read_bytes < COPIED_READS_BYTES_MAX,
    )
    if read_bytes and log_slice.data and not first_is_whole(log_slice.data):
        data.aborted_transactions = None  # nothing was read
        return data
    data.records = log_slice.data
    if read_committed and target.fetch_offset < log.last_stable_offset:
        data.aborted_transactions = log.producers.aborted_transactions(
            target.fetch_offset, log_slice, log.log_end_offset
        )
    return data


def partition_of(replicas: ReplicaManager, target: FetchTarget) -> Partition:
    """Return the partition of a target, by topic id if the request uses ids.

    :raises KafkaError: When this broker does not have the partition.
    """
    if not target.by_id:
        return replicas.partition(target.topic, target.index)
    return replicas.partition_by_id(target.topic_id, target.index)


def find_divergence(partition: Partition, last_fetched_epoch: int, fetch_offset: int) -> EndOfEpoch | None:
    """Return where the log diverges from what a reader has, by the epoch of its last record (KIP-595).

    None if it does not, or if the reader does not know the epoch (-1).

    :raises KafkaError: OFFSET_OUT_OF_RANGE if the log does not have the epoch.
    """
    if last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.log.end_offset_for_epoch(last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        message = f"{partition.topic}-{partition.index} has no leader epoch {last_fetched_epoch}."
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return EndOfEpoch(epoch, end_offset)
    return None
