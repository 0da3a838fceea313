"""The fetch session of a follower on the leader's side.

It remembers which partitions may have something new for the follower, so that a fetch looks only at these. A session of
a consumer (`fetch_sessions.py`) looks at all its partitions.
"""

import asyncio
import itertools
from dataclasses import dataclass

from barnabas.base.ids import TopicIdPartition


@dataclass(slots=True)
class FollowedPartition:
    """The position of a follower in one partition, and the values that were last sent to it."""

    fetch_offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int
    sent_high_watermark: int = -1
    sent_log_start_offset: int = -1


class FollowerSession:
    """The partitions that one follower fetches from this broker."""

    def __init__(self, session_id: int, broker_id: int) -> None:
        self.session_id = session_id
        self.broker_id = broker_id
        self.epoch = 1  #: the epoch that the next request must have
        self.is_closed = False  #: the follower has begun another one
        self.targets: dict[TopicIdPartition, FollowedPartition] = {}
        self._marked: dict[TopicIdPartition, None] = {}  #: partitions that may have something new, in order
        #: partitions in which the leader does not know the follower's position, which was named in an earlier request
        self._missing_positions: dict[TopicIdPartition, None] = {}
        self._waiting: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._delayed: dict[TopicIdPartition, None] = {}  #: partitions to read after a throttle time
        self._delay: asyncio.TimerHandle | None = None

    @property
    def has_marked(self) -> bool:
        """Whether a partition may have something new."""
        return bool(self._marked)

    @property
    def throttled_count(self) -> int:
        return len(self._delayed)

    def mark(self, partition: TopicIdPartition, *, wakes: bool) -> None:
        """Read a partition in the next fetch; if it `wakes` and is not throttled, end the wait of the present one."""
        self._marked[partition] = None
        if wakes and partition not in self._delayed:
            self.wake()

    def mark_later(self, partition: TopicIdPartition, delay_ms: int) -> None:
        """Mark a throttled partition after a while, together with others that are throttled at that time."""
        self._delayed[partition] = None
        if self._delay is None:
            self._delay = asyncio.get_running_loop().call_later(delay_ms / 1000, self._mark_delayed)

    def _mark_delayed(self) -> None:
        self._delay = None
        self._marked |= self._delayed
        self._delayed.clear()
        self.wake()

    def poll_marked(self, count_max: int) -> list[TopicIdPartition]:
        """Return some of the partitions to read, and unmark them."""
        taken = list(itertools.islice(self._marked, count_max))
        for partition in taken:
            del self._marked[partition]
        return taken

    def mark_position_missing(self, partition: TopicIdPartition) -> None:
        """Store the position in a partition with the next request, which names only what has changed."""
        self._missing_positions[partition] = None

    def poll_missing_positions(self) -> list[TopicIdPartition]:
        """Return the partitions marked by `mark_position_missing`, and unmark them."""
        taken = list(self._missing_positions)
        self._missing_positions.clear()
        return taken

    async def wait(self, max_wait_ms: int) -> None:
        """Wait until a partition that `wakes` is marked, at most `max_wait_ms`."""
        loop = asyncio.get_running_loop()
        self._waiting = waiting = loop.create_future()
        timer = loop.call_later(max_wait_ms / 1000, _complete, waiting)
        try:
            await waiting
        finally:
            timer.cancel()
            if self._waiting is waiting:
                self._waiting = None

    def wake(self) -> None:
        """End the wait of the present fetch."""
        if self._waiting is not None:
            _complete(self._waiting)

    def wake_later(self, pause_s: float) -> None:
        """After a pause, end the wait of the fetch that is then present."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(pause_s, self._wake_now)

    def _wake_now(self) -> None:
        self._timer = None
        self.wake()

    def close(self) -> None:
        """End the wait of the present fetch, which then gets what there is."""
        self.is_closed = True
        for timer in (self._timer, self._delay):
            if timer is not None:
                timer.cancel()
        self.wake()


def _complete(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
