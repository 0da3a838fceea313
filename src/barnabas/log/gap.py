"""The gap that a power failure may leave in a log: a segment has lost its last batches, and the next one has survived.

Other replicas may have these batches, in the same leader epoch. So a leader with a gap gives all batches behind it its
own epoch. Then the former epoch ends at the gap: followers truncate there, and have the same log as the leader again.
"""

from barnabas.log.partition_log import PartitionLog
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError

_log = get_logger("barnabas.log")


def begin_epoch_at_gap(log: PartitionLog, leader_epoch: int) -> None:
    """Give the batches behind a gap the epoch of this leader, in place; does nothing for a log without a gap.

    A disk error takes the log offline but is not raised, because the leader is elected regardless of this disk.
    """
    offset = log.gap_offset
    if offset is None or log.failure is not None:
        return
    try:
        for segment in reversed(log.segments.since(offset)):  # so that epochs never fall along the log
            segment.set_leader_epoch(leader_epoch, offset)
        log.epochs.assign(leader_epoch, offset)
    except OSError as error:
        log.take_offline(error)
    except KafkaError as error:
        _log.error(
            "cannot read the batches behind a gap", partition=str(log.topic_partition), why=error.message
        )
    log.rewrites_count += 1  # a flush, a compaction or a copy that has begun may have the former epochs
