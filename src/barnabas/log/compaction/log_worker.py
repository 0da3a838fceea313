"""Work beside a log, in threads, in steps, within a bound on its speed; only the end of it is the event loop's."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.throttle import Throttle
from barnabas.log.compaction.cleaning_pass import discard
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.segment import Segment

ResultT = TypeVar("ResultT")

#: More threads than anybody has cores; how many work is `log.cleaner.threads`.
_THREADS_COUNT_MAX = 64


class Interrupted(Exception):
    """The log is not as it was, or the broker stops: what was written anew is of no use."""


class LogWork(NamedTuple):
    """A log as it was when the work on it began."""

    log: PartitionLog
    truncations_count: int


class LogWorker:
    """What those share who write segments anew. All methods run on the event loop."""

    def __init__(self, directories: LogManager, clock: Clock, bytes_per_second: Callable[[], float]) -> None:
        self._directories = directories
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._threads = ThreadPoolExecutor(_THREADS_COUNT_MAX, thread_name_prefix="log-cleaner")
        self.throttle = Throttle()
        self.stopping = asyncio.Event()
        #: Logs whose segments somebody writes anew.
        self.busy: set[PartitionLog] = set()
        #: Logs that a process beside the broker works on.
        self.claimed: frozenset[PartitionLog] = frozenset()

    def close(self) -> None:
        """Wait for the threads; to be called once nobody drives steps any more."""
        self._threads.shutdown()

    async def drive(self, work: LogWork, steps: Generator[int, None, ResultT]) -> ResultT:
        """Take the steps one by one, each in a thread, as fast as is allowed; gives back what the last returns.

        :raises Interrupted: When the log is not as it was.
        """
        try:
            while True:
                await self._wait_turn(work)
                step = await self.in_thread(_advance, steps)
                if isinstance(step, _Done):
                    result: ResultT = step.result
                    return result
                self.throttle.used(step, self._bytes_per_second(), self._clock.monotonic_ms())
        finally:
            steps.close()

    async def _wait_turn(self, work: LogWork) -> None:
        while True:
            if not self.should_continue(work):
                raise Interrupted
            wait_ms = self.throttle.wait_ms(self._bytes_per_second(), self._clock.monotonic_ms())
            if not wait_ms:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), wait_ms / 1000)

    def should_continue(self, work: LogWork) -> bool:
        """Whether the log is still in use, whole, and not being copied to another directory."""
        log, name = work.log, work.log.topic_partition
        return (
            not self.stopping.is_set()
            and log.failure is None
            and self._directories.get(name) is log
            and self._directories.future_directory_of(name) is None
            and log.truncations_count == work.truncations_count
        )

    def swap(self, work: LogWork, old: Sequence[Segment], cleaned: Segment) -> list[Path]:
        """Put a segment in the place of others, all of which are still there; gives back files to remove later.

        :raises Interrupted: When they are not; nothing is left of `cleaned` then.
        """
        if not self.should_continue(work) or not work.log.segments.hold(old):
            discard(cleaned)
            raise Interrupted
        return work.log.replace_segments(old, cleaned)

    def in_thread(self, work: Callable[..., ResultT], *arguments: object) -> "asyncio.Future[ResultT]":
        """What `work` returns."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


@dataclass(frozen=True)
class _Done(Generic[ResultT]):
    result: ResultT


def _advance(steps: Generator[int, None, ResultT]) -> int | _Done[ResultT]:
    """The bytes that the next step has used, or what the last one returns."""
    try:
        return next(steps)
    except StopIteration as end:
        return _Done(end.value)
