"""Resolves options to ranges of offsets, which are then fixed."""

from collections.abc import Collection

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import LATEST
from barnabas.reading.data_loss import DataLossPolicy
from barnabas.reading.logs import Logs
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.offset_range_limits import Positions, ending_offsets, starting_offsets
from barnabas.reading.options import ReadOptions, SpecificOffsets, Time, Times


def plan_ranges(
    logs: Logs, partitions: Collection[TopicPartition], options: ReadOptions
) -> list[OffsetRange]:
    """Return the requested offsets of each partition; a range whose end is before its start is empty.

    :raises DataLossError: A requested offset is behind the end, unless the options tolerate it.
    :raises OptionError: The offsets do not match the partitions, or no record is as late as a starting time.
    """
    starts = starting_offsets(logs, partitions, options)
    ends = ending_offsets(logs, partitions, options)
    if isinstance(options.starting, SpecificOffsets):
        starts = _starts_in_logs(logs, starts, ends, options)
    return [OffsetRange(tp, starts[tp], ends[tp]) for tp in partitions]


def _starts_in_logs(
    logs: Logs, starts: Positions, ends: Positions, options: ReadOptions
) -> dict[TopicPartition, int]:
    """Return the starts, and the end of the log for those behind it, which are reported."""
    losses = DataLossPolicy(fail=options.fail_on_data_loss, option=options.loss_option)
    found = dict(starts)
    later = sorted(tp for tp, start in starts.items() if start > ends[tp])
    for tp, log_end in logs.offsets(dict.fromkeys(later, LATEST)).items():
        start = starts[tp]
        if start <= log_end and isinstance(options.ending, Time | Times):
            continue  # all records before the ending time have been read
        found[tp] = min(start, log_end)
        end = log_end if start > log_end else ends[tp]
        losses.report(f"partition {tp} ends at offset {end}, before the start at {start}")
    return found
