"""Reading many partitions for one fetch: its limits, and what each partition answers (KIP-74)."""

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.replication.fetch_data import EndOfEpoch, FetchedPartition, FetchTarget, Key
from barnabas.replication.partition import NO_EPOCH, Partition
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import first_is_whole

#: Beyond so many bytes an answer takes nothing but views of the segments, so that the answers that slow clients have
#: not read yet cost little memory of ours.
COPIED_BYTES_MAX = 256 << 10

_NO_LOG = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


@dataclass(slots=True)
class Reads:
    """What one round of reading found."""

    answers: list[tuple[Key, FetchTarget, FetchedPartition]]
    size_bytes: int = 0
    aborted_count: int = 0  #: aborted transactions in all answers
    must_answer: bool = False  #: an error or a diverging epoch: the client should not wait for more


def read_all(
    replicas: ReplicaManager,
    targets: Iterable[tuple[Key, FetchTarget]],
    max_bytes: int,
    *,
    committed: bool,
    is_incremental: bool = False,
    reads: Reads | None = None,
) -> Reads:
    """Read from each target in turn until `max_bytes` are full; `reads` is what others gave before.

    The first batch found is read whole, however large it is: a fetch always makes progress. An incremental fetch leaves
    out the targets of which its session has nothing new to report (KIP-227).
    """
    reads = Reads([]) if reads is None else reads
    for key, target in targets:
        left_bytes = max_bytes - reads.size_bytes
        try:
            partition = find(replicas, target)
            partition.check_leader(
                max(NO_EPOCH, target.leader_epoch)
            )  # as Kafka reads it here, unlike elsewhere
            if is_incremental and _is_unchanged(partition, target, committed=committed):
                continue
            data = _read(partition, target, left_bytes, reads.size_bytes, committed=committed)
        except KafkaError as error:
            data = refusal(target.index, error.code)
        if data.error_code or data.diverging_epoch is not None:
            reads.must_answer = True
        elif data.records:
            reads.size_bytes += len(data.records)
            reads.aborted_count += len(data.aborted_transactions or ())
        reads.answers.append((key, target, data))
    return reads


def refusal(index: int, code: ErrorCode) -> FetchedPartition:
    """What a partition in error answers: nothing known but the error.

    Aborted transactions are null where a log was asked, as in Apache Kafka, and empty where there is none.
    """
    return FetchedPartition(index, code, aborted_transactions=[] if code in _NO_LOG else None)


def _is_unchanged(partition: Partition, target: FetchTarget, *, committed: bool) -> bool:
    """Return whether there is nothing to read, and the session knows where the log starts and ends."""
    log = partition.log
    return (
        target.fetch_offset == (log.last_stable_offset if committed else log.high_watermark)
        and target.sent_high_watermark == log.high_watermark
        and target.sent_log_start_offset == log.log_start_offset
        and target.last_fetched_epoch < 0
        and log.failure is None
    )


def _read(
    partition: Partition, target: FetchTarget, left_bytes: int, read_bytes: int, *, committed: bool
) -> FetchedPartition:
    log = partition.log
    data = FetchedPartition(
        target.index,
        ErrorCode.NONE,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        [] if committed else None,
    )
    if target.last_fetched_epoch >= 0 and (diverging := _divergence(partition, target)):
        data.diverging_epoch = diverging
        data.aborted_transactions = None  # nothing was read
        return data
    size_bytes = min(target.max_bytes, left_bytes)
    found = partition.read(
        target.fetch_offset,
        size_bytes,
        committed=committed,
        min_one_batch=read_bytes == 0,
        may_copy=read_bytes < COPIED_BYTES_MAX,
    )
    if read_bytes and found.data and not first_is_whole(found.data):
        data.aborted_transactions = None  # nothing was read
        return data
    data.records = found.data
    if committed and target.fetch_offset < log.last_stable_offset:
        data.aborted_transactions = log.aborted_transactions(target.fetch_offset, found)
    return data


def find(replicas: ReplicaManager, target: FetchTarget) -> Partition:
    """The partition of a target, by id where the client speaks ids.

    :raises KafkaError: When this broker has none such.
    """
    if not target.by_id:
        return replicas.partition(target.topic, target.index)
    return replicas.partition_by_id(target.topic_id, target.index)


def _divergence(partition: Partition, target: FetchTarget) -> EndOfEpoch | None:
    """Where the log parts from what the client read, by the epoch that it read last (KIP-595)."""
    epoch, end_offset = partition.log.end_offset_for_epoch(target.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        message = f"{partition.topic}-{partition.index} has no leader epoch {target.last_fetched_epoch}."
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
    if epoch < target.last_fetched_epoch or end_offset < target.fetch_offset:
        return EndOfEpoch(epoch, end_offset)
    return None
