"""Transactions that were open when their topic was deleted, and are in its log when it is undeleted.

Coordinators gave them up at the deletion, and write no markers for them. Without markers the last stable offset would
stand still, and consumers that read committed records would wait for ever.
"""

from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers.producer_state_manager import NO_OFFSET
from barnabas.telemetry.logs import get_logger
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.control import EndTransactionMarker

_log = get_logger("barnabas.replication")


def abort_from_trash(log: PartitionLog, leader_epoch: int) -> int:
    """Abort the transactions that were open when the log left the trash; return the size of the markers in bytes."""
    end_offset, log.left_trash_at = log.left_trash_at, 0
    size_bytes = 0
    for producer in log.producers.states.active:
        if not NO_OFFSET < producer.current_txn_start_offset < end_offset:
            continue
        coordinator_epoch = max(producer.coordinator_epoch, 0)
        marker = EndTransactionMarker(
            producer.producer_id, producer.producer_epoch, coordinator_epoch, False, log.clock.wall_ms()
        )
        fields = {"partition": str(log.topic_partition), "producer_id": producer.producer_id}
        try:
            size_bytes += log.append_transaction_marker(marker, leader_epoch).size_bytes
        except KafkaError as error:
            _log.error("cannot abort a transaction of an undeleted topic", **fields, why=error.message)
        else:
            _log.warning("aborted a transaction that was open when its topic was deleted", **fields)
    return size_bytes
