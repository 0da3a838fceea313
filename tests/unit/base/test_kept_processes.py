"""Processes are started again when they end, and stopped within a time limit."""

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import Iterator

import pytest

from barnabas.base import kept_processes
from barnabas.base.kept_processes import EXIT_CANNOT_START, keep_running, stop_process

WAIT = "import signal; print(flush=True); signal.pause()"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAIT}"


def kept(codes: Iterator[int], *, runs_max: int) -> tuple[int, list[tuple[int, float]]]:
    """Keep a process that ends with these codes, and stop after some ends; return the last code and all ends."""

    async def run() -> tuple[int, list[tuple[int, float]]]:
        stopping = asyncio.Event()
        ends: list[tuple[int, float]] = []

        async def run_once() -> int:
            return next(codes)

        def note(code: int, pause_s: float) -> None:
            ends.append((code, pause_s))
            if len(ends) == runs_max:
                stopping.set()

        return await keep_running(run_once, stopping, note), ends

    return asyncio.run(run())


def test_pauses_between_failures_get_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_processes, "RESTART_PAUSES_S", (0.0, 0.001, 0.002))
    code, ends = kept(iter([1, -9, 1, 1]), runs_max=4)
    assert ends == [(1, 0.0), (-9, 0.001), (1, 0.002), (1, 0.002)]
    assert code == 1


def test_a_process_that_was_stable_is_started_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_processes, "STABLE_S", -1.0)
    _, ends = kept(iter([1, 1, 1]), runs_max=3)
    assert ends == [(1, 0.0)] * 3


def test_a_process_that_cannot_start_is_not_started_again() -> None:
    assert kept(iter([EXIT_CANNOT_START]), runs_max=1) == (EXIT_CANNOT_START, [])


def test_a_process_that_has_run_once_is_started_again_whatever_its_code_is() -> None:
    _, ends = kept(iter([1, EXIT_CANNOT_START]), runs_max=2)
    assert [code for code, _ in ends] == [1, EXIT_CANNOT_START]


@pytest.mark.parametrize(("code", "stopped"), [(WAIT, True), (STUBBORN, False)])
def test_a_process_is_killed_if_it_does_not_stop(
    monkeypatch: pytest.MonkeyPatch, code: str, stopped: bool
) -> None:
    if not stopped:
        monkeypatch.setattr(kept_processes, "STOP_TIMEOUT_S", 0.01)

    async def run() -> tuple[bool, Process]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        await process.stdout.readline()  # the signal's handler is set
        was_stopped = await stop_process(process)
        await process.wait()
        assert await stop_process(process), "one that has ended is stopped"
        return was_stopped, process

    was_stopped, _ = asyncio.run(run())
    assert was_stopped == stopped
