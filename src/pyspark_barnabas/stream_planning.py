"""A stream's micro-batches: how far the next one goes, and its tasks. Knows logs, and nothing of Spark's engine."""

import time
from collections.abc import Callable

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.offsets import EARLIEST, LATEST
from pyspark_barnabas.losses import Losses
from pyspark_barnabas.offsets import Logs, Positions, starting_offsets
from pyspark_barnabas.options import SourceOptions
from pyspark_barnabas.planner import Planner
from pyspark_barnabas.planning import OffsetRange, share_limit
from pyspark_barnabas.tasks import ReadTask


class StreamPlanner:
    """Follows the partitions of a stream, those that come later included."""

    def __init__(
        self,
        logs: Logs,
        options: SourceOptions,
        clock: Clock | None = None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._logs = logs
        self._options = options
        self._clock = clock or SystemClock()
        self._pause = pause
        self._losses = Losses(fail=options.fail_on_data_loss)
        self._planner = Planner(logs, options)
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._pinned: Positions | None = None
        self._batch_began_ms: int | None = None
        #: The ends of all partitions as they were last seen.
        self.seen: Positions | None = None

    def initial(self) -> Positions:
        """Where a new query begins.

        :raises OptionError: When the starting offsets do not fit the partitions.
        """
        return starting_offsets(self._logs, self._partitions(), self._options)

    def pin(self) -> None:
        """Let the query end where the partitions end now (`Trigger.AvailableNow`)."""
        self._pinned = self.seen = self._ends({})

    def latest(self, start: Positions, *, limited: bool) -> Positions:
        """Where the next micro-batch ends: `start` itself when it is to wait.

        :raises DataLossError: When a topic is another one than before.
        """
        ends = self._ends(start) if self._pinned is None else self._pinned
        self.seen = ends
        if not limited:
            return ends
        starts = {**self._earliest(ends.keys() - start.keys()), **start}
        if self._must_wait(starts, ends):
            return start
        self._batch_began_ms = self._clock.monotonic_ms()
        limit = self._options.max_offsets_per_trigger
        return ends if limit is None else share_limit(limit, starts, ends)

    def tasks(self, start: Positions, end: Positions) -> list[ReadTask]:
        """What reads everything between two positions; partitions that are new are read from their first offset.

        :raises DataLossError: When partitions are gone, or begin or end where they should not.
        """
        if not end.keys() <= self._topic_ids.keys():
            self._partitions()
        starts = {**start, **self._starts_of_new(end.keys() - start.keys())}
        gone = sorted(start.keys() - end.keys())
        if gone:
            self._losses.report(f"partitions are gone: {', '.join(str(each) for each in gone)}")
        ranges = []
        for place in sorted(end.keys() & starts.keys()):
            low, high = starts[place], end[place]
            if high < low:
                self._losses.report(
                    f"partition {place} ends at offset {high} now, and was read to {low} before"
                )
                low = self._earliest([place]).get(place, high)
            ranges.append(OffsetRange(place, low, high))
        return self._planner.plan(ranges, self._topic_ids)

    def _must_wait(self, starts: Positions, ends: Positions) -> bool:
        """Whether there is too little that is new, and not for too long (`minOffsetsPerTrigger`)."""
        minimum = self._options.min_offsets_per_trigger
        if minimum is None or self._pinned is not None or self._batch_began_ms is None:
            return False
        waited_ms = self._clock.monotonic_ms() - self._batch_began_ms
        new_count = sum(end - starts.get(place, end) for place, end in ends.items())
        return new_count < minimum and waited_ms < self._options.max_trigger_delay_ms

    def _partitions(self) -> dict[TopicPartition, bytes]:
        """The partitions of now; a topic that was deleted and made anew is a loss."""
        found = self._logs.partitions(self._options.selection)
        anew = {
            place.topic
            for place, topic_id in found.items()
            if ZERO_UUID not in (topic_id, before := self._topic_ids.get(place, topic_id))
            and topic_id != before
        }
        self._topic_ids = found
        if anew:
            self._losses.report(f"deleted and made anew: {', '.join(sorted(anew))}")
        return found

    def _ends(self, start: Positions) -> Positions:
        """The ends of now; asked for again while one lies before `start`, as a new leader may not know better yet."""
        for attempt in range(1, self._options.offset_attempts_count + 1):
            ends = self._logs.offsets(dict.fromkeys(self._partitions(), LATEST))
            if all(ends[place] >= start.get(place, 0) for place in ends):
                break
            if attempt < self._options.offset_attempts_count:
                self._pause(self._options.offset_retry_ms / 1000)
        return ends

    def _earliest(self, places: "set[TopicPartition] | list[TopicPartition]") -> dict[TopicPartition, int]:
        there = [place for place in places if place in self._topic_ids]
        return self._logs.offsets(dict.fromkeys(there, EARLIEST)) if there else {}

    def _starts_of_new(self, places: set[TopicPartition]) -> dict[TopicPartition, int]:
        starts = self._earliest(places)
        missing = sorted(places - starts.keys())
        if missing:
            self._losses.report(f"partitions are gone: {', '.join(str(each) for each in missing)}")
        for place, offset in sorted(starts.items()):
            if offset != 0:
                self._losses.report(f"the new partition {place} begins at offset {offset} and not at 0")
        return starts
