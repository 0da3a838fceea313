"""Processes of tables are kept running."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from barnabas.tables.supervision import PROCESS_VARIABLE, ProcessSupervisor

#: Appends its number to a file, and waits for its end.
NOTE = f"""
import os, sys, time
with open(sys.argv[1], "a") as file:
    print(os.environ["{PROCESS_VARIABLE}"], file=file)
"""


def supervisor(code: str, path: Path, count: int = 1) -> ProcessSupervisor:
    return ProcessSupervisor([sys.executable, "-c", NOTE + code, str(path)], count)


def notes(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def run_with(kept: ProcessSupervisor, act: Callable[[], Awaitable[None]]) -> int:
    """Run the supervisor while `act` runs, and stop it then; return its exit code."""

    async def both() -> int:
        running = asyncio.ensure_future(kept.run())
        async with asyncio.timeout(30):
            await act()
        kept.stop()
        return await running

    return asyncio.run(both())


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        await asyncio.sleep(0.01)


def test_each_process_knows_its_number(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    kept = supervisor("time.sleep(60)", path, 2)

    async def both_run() -> None:
        await until(lambda: sorted(notes(path)) == ["0/2", "1/2"])

    run_with(kept, both_run)
    assert all(process.returncode is not None for process in kept.processes.values())


def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    kept = supervisor("time.sleep(60)", path)

    async def kill() -> None:
        await until(lambda: len(notes(path)) == 1 and 0 in kept.processes)
        kept.processes[0].kill()
        await until(lambda: len(notes(path)) == 2)

    run_with(kept, kill)


def test_a_process_whose_options_are_not_valid_ends_all(tmp_path: Path) -> None:
    ends = f"sys.exit(2 if os.environ['{PROCESS_VARIABLE}'][0] == '1' else time.sleep(60))"
    kept = supervisor(ends, tmp_path / "notes", 2)
    assert asyncio.run(asyncio.wait_for(kept.run(), 30)) == 2
