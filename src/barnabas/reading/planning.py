"""Resolves options to ranges of offsets, which are then fixed."""

from collections.abc import Collection

from barnabas.base.ids import TopicPartition
from barnabas.reading.data_loss import DataLossPolicy
from barnabas.reading.logs import Logs
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.offset_range_limits import Positions, ending_offsets, starting_offsets
from barnabas.reading.options import ReadOptions, SpecificOffsets


def plan_ranges(
    logs: Logs, partitions: Collection[TopicPartition], options: ReadOptions
) -> list[OffsetRange]:
    """Return the requested offsets of each partition.

    :raises DataLossError: A requested offset is behind the end, unless the options tolerate it.
    :raises OptionError: The offsets do not match the partitions, or no record is as late as a starting time.
    """
    starts = starting_offsets(logs, partitions, options)
    ends = ending_offsets(logs, partitions, options)
    if isinstance(options.starting, SpecificOffsets):
        _check_starts(
            starts, ends, DataLossPolicy(fail=options.fail_on_data_loss, option=options.loss_option)
        )
    return [OffsetRange(tp, starts[tp], ends[tp]) for tp in partitions]


def _check_starts(starts: Positions, ends: Positions, losses: DataLossPolicy) -> None:
    for tp, start in sorted(starts.items()):
        if start > ends[tp]:
            losses.report(f"partition {tp} ends at offset {ends[tp]}, before the start at {start}")
