import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.replication.flusher import Flusher
from support.loop import on_loop, turns


class Log:
    """A log whose flush blocks until it is released, and fails on demand."""

    def __init__(self, error: Exception | None = None, directory: str = "/a/t-0") -> None:
        self.directory = Path(directory)
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.error = error
        self.flushes_count = 0
        self.on_flushed: Callable[[], None] = lambda: None
        self.threads: set[str] = set()
        self.topic_partition = "t-0"
        self.marked: list[int] = []
        self.failures: list[OSError] = []

    def take_offline(self, error: OSError) -> None:
        self.failures.append(error)

    def mark_flushed(self, flushed: int) -> None:
        self.marked.append(flushed)

    def sync(self) -> int:
        self.entered.set()
        assert self.gate.wait(10)
        self.flushes_count += 1
        self.threads.add(threading.current_thread().name)
        if self.error:
            raise self.error
        return self.flushes_count


async def entered(log: Log) -> None:
    """Wait until a flush of `log` is running."""
    assert await asyncio.to_thread(log.entered.wait, 10)


def flushed(flusher: Flusher, log: Log) -> "asyncio.Future[None]":
    duck: Any = log
    return flusher.when_flushed(duck)


@on_loop
async def test_requests_during_a_flush_share_the_next_one() -> None:
    flusher, log = Flusher(), Log()
    first = flushed(flusher, log)
    await entered(log)
    later = [flushed(flusher, log) for _ in range(50)]
    assert flusher.statistics() == {"flushes_count": 0, "waiting_logs_count": 1}
    log.gate.set()
    await asyncio.gather(first, *later)
    assert log.flushes_count == 2
    assert flusher.statistics() == {"flushes_count": 2, "waiting_logs_count": 0}
    await flusher.close()


@on_loop
async def test_requests_of_one_turn_share_one_flush() -> None:
    flusher, log = Flusher(), Log()
    log.gate.set()
    await asyncio.gather(*(flushed(flusher, log) for _ in range(10)))
    assert log.flushes_count == 1
    await flusher.close()


@on_loop
async def test_a_flush_runs_in_a_thread_without_blocking_the_loop() -> None:
    flusher, log = Flusher(), Log()
    waiting = flushed(flusher, log)
    await entered(log)
    await turns()
    assert not waiting.done()
    log.gate.set()
    await waiting
    assert all(name.startswith("log-flush") for name in log.threads)
    assert log.marked == [1]
    await flusher.close()


@on_loop
async def test_an_error_of_what_follows_a_flush_does_not_fail_it() -> None:
    def fail() -> None:
        raise OSError("of a high watermark")

    flusher, log = Flusher(), Log()
    log.on_flushed = fail
    log.gate.set()
    await flushed(flusher, log)
    assert (log.marked, log.failures) == ([1], [])
    await flusher.close()


@on_loop
async def test_an_error_reaches_every_waiter_of_its_log_only() -> None:
    flusher, bad, good = Flusher(), Log(OSError("disk gone")), Log()
    waits = [flushed(flusher, bad), flushed(flusher, bad), flushed(flusher, good)]
    bad.gate.set()
    good.gate.set()
    results = await asyncio.gather(*waits, return_exceptions=True)
    assert [str(result) for result in results] == ["disk gone", "disk gone", "None"]
    assert flusher.flushes_count == 1
    await flusher.close()


@on_loop
async def test_a_slow_disk_delays_only_its_own_logs() -> None:
    flusher, slow, quick = Flusher(), Log(directory="/slow/t-0"), Log(directory="/quick/t-1")
    quick.gate.set()
    waiting = flushed(flusher, slow)
    await entered(slow)
    for _ in range(3):
        await flushed(flusher, quick)
    assert not waiting.done()
    assert flusher.statistics() == {"flushes_count": 3, "waiting_logs_count": 0}
    slow.gate.set()
    await waiting
    await flusher.close()


@on_loop
async def test_a_flush_after_an_error_is_tried_again() -> None:
    flusher, log = Flusher(), Log(OSError("once"))
    log.gate.set()
    with pytest.raises(OSError, match="once"):
        await flushed(flusher, log)
    log.error = None
    await flushed(flusher, log)
    assert log.flushes_count == 2
    await flusher.close()


@on_loop
async def test_cancelled_waiters_are_skipped() -> None:
    flusher, good, bad = Flusher(), Log(), Log(OSError("late"))
    given_up = [flushed(flusher, good), flushed(flusher, bad)]
    kept = flushed(flusher, good)
    for future in given_up:
        future.cancel()
    good.gate.set()
    bad.gate.set()
    await kept
    await flusher.close()
    assert all(future.cancelled() for future in given_up)


@on_loop
async def test_closing_completes_requested_flushes() -> None:
    flusher, log = Flusher(), Log()
    first = flushed(flusher, log)
    await entered(log)
    second = flushed(flusher, log)
    closing = asyncio.create_task(flusher.close())
    await turns()
    assert not closing.done()
    log.gate.set()
    await closing
    assert first.done()
    assert second.done()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("log-flush")]


@on_loop
async def test_all_requested_flushes_can_be_awaited() -> None:
    flusher, log = Flusher(), Log()
    waiting = flushed(flusher, log)
    completing = asyncio.create_task(flusher.complete())
    await entered(log)
    assert not completing.done()
    log.gate.set()
    await completing
    assert waiting.done()
    await flusher.complete()
    await flusher.close()


@on_loop
async def test_an_unused_flusher_closes() -> None:
    await Flusher().close()


@on_loop
async def test_a_log_goes_offline_when_its_flush_fails() -> None:
    failed, sound = Log(OSError(5, "Input/output error")), Log()
    flusher = Flusher()
    for log in (failed, sound):
        log.gate.set()
    results = await asyncio.gather(
        *(flushed(flusher, log) for log in (failed, sound)), return_exceptions=True
    )
    assert results == [failed.error, None]
    assert (failed.failures, sound.failures) == ([failed.error], [])
    await flusher.close()
