"""Runs work on logs in threads, in steps and at a limited rate; only the final swap runs on the event loop."""

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

#: More threads than any machine has cores; `log.cleaner.threads` limits how many are in use.
_THREADS_COUNT_MAX = 64


class Interrupted(Exception):
    """The log has changed or the broker stops, so the new segments cannot be used."""


class LogWork(NamedTuple):
    """A log, and its state when the work on it began."""

    log: PartitionLog
    rewrites_count: int


class LogWorker:
    """The threads of the log cleaner and their rate limit. All methods run on the event loop."""

    def __init__(self, log_manager: LogManager, clock: Clock, bytes_per_second: Callable[[], float]) -> None:
        self._log_manager = log_manager
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._threads = ThreadPoolExecutor(_THREADS_COUNT_MAX, thread_name_prefix="log-cleaner")
        self.throttle = Throttle()
        self.stopping = asyncio.Event()

    def close(self) -> None:
        """Wait for the threads; call it when no work is driven any more."""
        self._threads.shutdown()

    async def drive(self, work: LogWork, steps: Generator[int, None, ResultT]) -> ResultT:
        """Run the steps one by one, each in a thread, within the rate limit; returns the generator's return value.

        :raises Interrupted: When the log has changed.
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
        """Whether the log is still in use, not truncated or changed since, and not being moved to another directory."""
        log, name = work.log, work.log.topic_partition
        return (
            not self.stopping.is_set()
            and log.failure is None
            and self._log_manager.get(name) is log
            and self._log_manager.future_directory_of(name) is None
            and log.rewrites_count == work.rewrites_count
        )

    def swap(self, work: LogWork, old: Sequence[Segment], cleaned: Segment) -> list[Path]:
        """Replace segments, all of which must still exist, by another one; returns the files to remove later.

        :raises Interrupted: When some do not exist any more; `cleaned` is removed then.
        """
        if not self.should_continue(work) or not work.log.segments.contains_run(old):
            discard(cleaned)
            raise Interrupted
        return work.log.replace_segments(old, cleaned)

    def in_thread(self, work: Callable[..., ResultT], *arguments: object) -> "asyncio.Future[ResultT]":
        """Run `work` in a thread and return its result."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


@dataclass(frozen=True)
class _Done(Generic[ResultT]):
    result: ResultT


def _advance(steps: Generator[int, None, ResultT]) -> int | _Done[ResultT]:
    """Return the bytes that the next step has used, or the generator's return value."""
    try:
        return next(steps)
    except StopIteration as end:
        return _Done(end.value)
