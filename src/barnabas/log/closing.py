"""Close a log so that the next start needs no recovery."""

from barnabas.log.partition_log import PartitionLog


def close_log(log: PartitionLog) -> None:
    """Flush and close. Blocks.

    :raises OSError: If the disk fails.
    """
    close_files(log)
    sync_closed(log)


def close_files(log: PartitionLog) -> None:
    """First half of `close_log`: write the producer snapshot and close the files.

    :raises OSError: If the disk fails.
    """
    log.producers.has_unsynced_snapshot = log.producers.take_snapshot(log.log_end_offset)
    log.local.close_files()


def sync_closed(log: PartitionLog) -> None:
    """Second half of `close_log`: flush everything to the disk. Blocks; may run in a thread.

    :raises OSError: If the disk fails.
    """
    local, producers = log.local, log.producers
    local.unsynced_directory |= producers.has_unsynced_snapshot
    log.flush()
    if producers.has_unsynced_snapshot:
        local.sync_segment(local.segments.active)
        producers.sync_snapshot()


def is_synced(log: PartitionLog) -> bool:
    """Whether `sync_closed` has nothing to do."""
    is_flushed = log.recovery_point == log.log_end_offset and log.epochs.is_synced
    return is_flushed and not log.producers.has_unsynced_snapshot and not log.local.unsynced_directory


def mark_synced(log: PartitionLog) -> None:
    """Replaces `sync_closed` when the whole file system has been flushed."""
    log.local.recovery_point = log.log_end_offset
