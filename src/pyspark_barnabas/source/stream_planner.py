"""Plans a stream's micro-batches: where the next one ends, and its tasks. Independent of Spark's engine."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST, LATEST
from barnabas.reading.data_loss import DataLossPolicy
from barnabas.reading.logs import Logs
from barnabas.reading.offset_range import OffsetRange
from barnabas.reading.offset_range_limits import Positions, starting_offsets
from pyspark_barnabas.source.options import SourceOptions
from pyspark_barnabas.source.range_splitting import share_limit
from pyspark_barnabas.source.task_planner import TaskPlanner
from pyspark_barnabas.source.tasks import ReadTask
from pyspark_barnabas.stream_offsets import StreamOffset


class StreamPlanner:
    """Follows the partitions of a stream, including new ones."""

    def __init__(
        self,
        logs: Logs,
        options: SourceOptions,
        clock: Clock | None = None,
        pause: Callable[[float], object] = time.sleep,
        slots_count: int | None = None,
    ) -> None:
        self._logs = logs
        self._options = options
        self._clock = clock or SystemClock()
        self._pause = pause
        self._losses = DataLossPolicy(fail=options.fail_on_data_loss)
        self._task_planner = TaskPlanner(logs, options, slots_count)
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._reported: set[tuple[str, bytes]] = set()
        self._initial: StreamOffset | None = None
        self._pinned: StreamOffset | None = None
        self._batch_began_ms: int | None = None
        #: The ends of all partitions as last seen.
        self.seen: StreamOffset | None = None

    def initial(self) -> StreamOffset:
        """Return the start of a new query.

        :raises OptionError: When the starting offsets do not match the partitions.
        """
        if self._initial is None:
            partitions = self._refresh_partitions()
            offsets = starting_offsets(self._logs, partitions, self._options)
            if self._pinned is not None:  # partitions that are created meanwhile are new in the next query
                offsets = {tp: offset for tp, offset in offsets.items() if tp in self._pinned.positions}
            self._initial = StreamOffset.of(offsets, partitions)
        return self._initial

    def pin(self) -> None:
        """End the query at the current ends (`Trigger.AvailableNow`)."""
        self._pinned = self.seen = self._ends(StreamOffset())

    def latest(self, start: StreamOffset | None, *, limited: bool) -> StreamOffset:
        """Return the end of the next micro-batch with its tasks; `start` if it is to wait.

        :param start: None if it is not known yet; then the tasks are not decided on.
        :raises DataLossError: When a topic has another id than at `start`.
        """
        if start is None:
            return self._latest_of_all()
        self.seen = ends = self._ends_after(start)
        recreated = self._report_recreated(start, ends.topic_ids)
        positions = start.without(recreated).positions
        begin = positions if start == self._initial else None
        starts = {**self._earliest(ends.positions.keys() - positions.keys()), **positions}
        if limited:
            if self._must_wait(starts, ends.positions):
                return start
            self._batch_began_ms = self._clock.monotonic_ms()
            limit = self._options.max_offsets_per_trigger
            ends = ends if limit is None else ends.at(share_limit(limit, starts, ends.positions))
        if ends.is_at(start):
            # with its tasks: Spark takes an offset that looks different for new records
            return start if begin is None else replace(start, begin=begin)
        ranges = [OffsetRange(tp, starts[tp], end) for tp, end in ends.positions.items() if tp in starts]
        return replace(ends, split=self._task_planner.split(ranges), begin=begin)

    def _latest_of_all(self) -> StreamOffset:
        """Return the end of a batch whose start is not known; it may be the first."""
        # Spark asks for it later; with startingOffsets=latest it would be after this end
        initial = self.initial()
        self.seen = ends = self._ends(StreamOffset())
        begin = initial.without(self._report_recreated(initial, ends.topic_ids)).positions
        return replace(ends, begin=begin)

    def tasks(self, start: StreamOffset, end: StreamOffset) -> list[ReadTask]:
        """Return tasks for the records between two offsets.

        New partitions are read from their first record, and so are those of a topic that was recreated between
        `start` and `end`. A topic that was recreated after `end`, before a batch is repeated, is left to the next
        batch: its present records do not belong to this one.

        :raises DataLossError: When partitions are gone, begin or end elsewhere, or belong to another topic.
        """
        if not end.positions.keys() <= self._topic_ids.keys():
            self._refresh_partitions()
        start = self._first_start(start, end)
        superseded = self._report_recreated(end, StreamOffset.of(end.positions, self._topic_ids).topic_ids)
        end = end.without(superseded)
        positions = start.without(superseded | self._report_recreated(start, end.topic_ids)).positions
        ends = end.positions
        starts = {**positions, **self._starts_of_new(ends.keys() - positions.keys())}
        missing = sorted(positions.keys() - ends.keys())
        if missing:
            self._losses.report(f"partitions are gone: {', '.join(str(each) for each in missing)}")
        ranges = [self._range(tp, starts[tp], ends[tp]) for tp in sorted(ends.keys() & starts.keys())]
        return self._task_planner.plan(ranges, self._topic_ids, end.split)

    def _first_start(self, start: StreamOffset, end: StreamOffset) -> StreamOffset:
        """Return the start of a batch; of a query's first batch, if it is repeated, the one of the first attempt.

        Spark keeps only ends. It asks for the initial offset again to repeat the first batch, and meanwhile the
        answer may have changed. A start from the checkpoint is used as it is: it is an end, which has `split` or
        `begin`, so it does not equal the initial offset. This is so with Spark 4.1, too, for whose batches the
        initial offset is always computed.
        """
        if end.begin is None or start != self._initial:
            return start
        return StreamOffset(end.begin, end.topic_ids)

    def _range(self, tp: TopicPartition, low: int, high: int) -> OffsetRange:
        if high < low:
            self._losses.report(f"partition {tp} ends at offset {high} now, and was read to {low} before")
            low = self._earliest([tp]).get(tp, high)
        return OffsetRange(tp, low, high)

    def _report_recreated(self, before: StreamOffset, now: Mapping[str, bytes]) -> set[str]:
        """Report each topic whose id has changed, once; return all of them."""
        recreated = before.recreated(now)
        for topic in sorted(recreated):
            if (topic, now[topic]) not in self._reported:
                self._losses.report_recreated(topic, before.topic_ids[topic], now[topic])
                self._reported.add((topic, now[topic]))
        return recreated

    def _must_wait(self, starts: Positions, ends: Positions) -> bool:
        """Whether there are too few new records, and the maximum delay has not passed (`minOffsetsPerTrigger`)."""
        minimum = self._options.min_offsets_per_trigger
        if minimum is None or self._pinned is not None or self._batch_began_ms is None:
            return False
        waited_ms = self._clock.monotonic_ms() - self._batch_began_ms
        new_count = sum(end - starts.get(tp, end) for tp, end in ends.items())
        return new_count < minimum and waited_ms < self._options.max_trigger_delay_ms

    def _refresh_partitions(self) -> dict[TopicPartition, bytes]:
        self._topic_ids = self._logs.partitions(self._options.selection)
        return self._topic_ids

    def _ends_after(self, start: StreamOffset) -> StreamOffset:
        """Return the ends for a batch: the pinned ones, if there are any that are not before its start."""
        if self._pinned is None:
            return self._ends(start)
        if _is_before(self._pinned, start):  # Spark pins first, and then asks for the start
            self._pinned = self._ends(start)
        return self._pinned

    def _ends(self, start: StreamOffset) -> StreamOffset:
        """Return the current ends; queried again if one is before `start`, because a new leader may not know the newest
        yet.
        """
        for attempt in range(1, self._options.offset_attempts_count + 1):
            ends = self._logs.offsets(dict.fromkeys(self._refresh_partitions(), LATEST))
            stream_offset = StreamOffset.of(ends, self._topic_ids)
            if not _is_before(stream_offset, start):
                break
            if attempt < self._options.offset_attempts_count:
                self._pause(self._options.offset_retry_ms / 1000)
        return stream_offset

    def _earliest(
        self, partitions: "set[TopicPartition] | list[TopicPartition]"
    ) -> dict[TopicPartition, int]:
        there = [tp for tp in partitions if tp in self._topic_ids]
        return self._logs.offsets(dict.fromkeys(there, EARLIEST)) if there else {}

    def _starts_of_new(self, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
        starts = self._earliest(partitions)
        missing = sorted(partitions - starts.keys())
        if missing:
            self._losses.report(f"partitions are gone: {', '.join(str(each) for each in missing)}")
        for tp, offset in sorted(starts.items()):
            if offset != 0:
                self._losses.report(f"the new partition {tp} begins at offset {offset} and not at 0")
        return starts


def _is_before(ends: StreamOffset, start: StreamOffset) -> bool:
    """Whether a partition ends before its start; one of a topic that was recreated does not."""
    read = start.without(start.recreated(ends.topic_ids)).positions
    return any(end < read.get(tp, 0) for tp, end in ends.positions.items())
