"""Resolves start and end options to an offset of each partition."""

from collections.abc import Collection, Mapping

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec
from barnabas.reading.logs import NO_OFFSET, Logs
from barnabas.reading.option_values import OptionError
from barnabas.reading.options import (
    EARLIEST_MARKER,
    LATEST_MARKER,
    Edge,
    OffsetRangeLimit,
    ReadOptions,
    SpecificOffsets,
    Time,
    Times,
)

#: An offset of each partition.
Positions = Mapping[TopicPartition, int]

_EDGES = {Edge.EARLIEST: EARLIEST, Edge.LATEST: LATEST}
_MARKERS = {EARLIEST_MARKER: EARLIEST, LATEST_MARKER: LATEST}


def starting_offsets(
    logs: Logs, partitions: Collection[TopicPartition], options: ReadOptions
) -> dict[TopicPartition, int]:
    """Resolve the starting offsets.

    :raises OptionError: When partitions are missing, or no record is as late as a starting time.
    """
    offsets = _resolve(logs, partitions, options.starting, "starting")
    late = sorted(tp for tp, offset in offsets.items() if offset == NO_OFFSET)
    if late and not options.start_may_be_latest:
        message = (
            f"no record of partition {late[0]} is as late as its starting time, "
            f"{_time_of(options.starting, late[0])}; with startingOffsetsByTimestampStrategy=latest "
            "reading begins at the end there"
        )
        raise OptionError(message)
    return offsets | logs.offsets(dict.fromkeys(late, LATEST))


def ending_offsets(
    logs: Logs, partitions: Collection[TopicPartition], options: ReadOptions
) -> dict[TopicPartition, int]:
    """Resolve the ending offsets; a time later than all records is the end.

    :raises OptionError: When partitions are missing.
    """
    offsets = _resolve(logs, partitions, options.ending, "ending")
    late = [tp for tp, offset in offsets.items() if offset == NO_OFFSET]
    return offsets | logs.offsets(dict.fromkeys(late, LATEST))


def _resolve(
    logs: Logs, partitions: Collection[TopicPartition], limit: OffsetRangeLimit, side: str
) -> dict[TopicPartition, int]:
    match limit:
        case Edge():
            return logs.offsets(dict.fromkeys(partitions, _EDGES[limit]))
        case Time(timestamp_ms):
            return logs.offsets(dict.fromkeys(partitions, OffsetSpec.at(timestamp_ms)))
        case Times(times_ms):
            _check_complete(partitions, times_ms, f"{side}OffsetsByTimestamp")
            return logs.offsets({tp: OffsetSpec.at(time_ms) for tp, time_ms in times_ms.items()})
        case SpecificOffsets(offsets):
            _check_complete(partitions, offsets, f"{side}Offsets")
            specs = {tp: _MARKERS[offset] for tp, offset in offsets.items() if offset in _MARKERS}
            return dict(offsets) | logs.offsets(specs)


def _check_complete(
    partitions: Collection[TopicPartition], offsets: Mapping[TopicPartition, int], option: str
) -> None:
    missing = set(partitions) - offsets.keys()
    beyond = offsets.keys() - set(partitions)
    if missing or beyond:
        message = f"option '{option}' must name every partition that is read and no other"
        if missing:
            message += f"; it lacks {', '.join(str(tp) for tp in sorted(missing))}"
        if beyond:
            unselected = ", ".join(str(tp) for tp in sorted(beyond))
            message += f"; {unselected} {'is' if len(beyond) == 1 else 'are'} not selected"
        raise OptionError(message)


def _time_of(limit: OffsetRangeLimit, tp: TopicPartition) -> int | None:
    match limit:
        case Time(timestamp_ms):
            return timestamp_ms
        case Times(times_ms):
            return times_ms[tp]
    return None
