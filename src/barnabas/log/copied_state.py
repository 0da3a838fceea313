"""State that a copy of a log does not get from the batches."""

from barnabas.log.partition_log import PartitionLog


def copy_state(source: PartitionLog, target: PartitionLog) -> None:
    """Give `target`, which has every batch of `source`, its bounds, leader epochs and producer state.

    :raises KafkaError: KAFKA_STORAGE_ERROR if the disk of `target` fails; `source` is unchanged then.
    """
    assert target.log_end_offset == source.log_end_offset, (target.log_end_offset, source.log_end_offset)
    try:
        target.epochs.replace(source.epochs.entries)
        target.producers.copy_from(source.producers, target.log_end_offset)
    except OSError as error:
        raise target.take_offline(error) from error
    target.config = source.config
    target.log_start_offset, target.cleaner_offset = source.log_start_offset, source.cleaner_offset
    target.left_trash_at, target.gap_offset = source.left_trash_at, source.gap_offset
    target.update_high_watermark(source.high_watermark)
