"""Runs services as processes and starts those again that end, however they end."""

import asyncio
import os
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence

from barnabas.base.kept_processes import keep_running, stop_process
from barnabas.telemetry.logs import get_logger

#: Set in the environment of a supervised process, with its number. It stops when its standard input ends, because the
#: supervisor has been killed then.
PROCESS_VARIABLE = "BARNABAS_TABLES_PROCESS"

_log = get_logger("barnabas.tables")


class ProcessSupervisor:
    """Keeps processes running until `stop`."""

    def __init__(self, command: Sequence[str], count: int) -> None:
        self._command = command
        self._count = count
        self._stopping = asyncio.Event()
        self.processes: dict[int, Process] = {}  #: by number; those that are running or ended last

    def stop(self) -> None:
        """Let `run` stop the processes and return."""
        self._stopping.set()

    async def run(self) -> int:
        """Run until `stop`, or until a process says that its options are not valid; return the largest exit code."""
        try:
            async with asyncio.TaskGroup() as group:
                keepers = [group.create_task(self._keep(number)) for number in range(self._count)]
                await self._stopping.wait()
                for number, process in self.processes.items():
                    group.create_task(self._stop(number, process))
        finally:  # after an error, too, no process is left behind
            for process in self.processes.values():
                if process.returncode is None:
                    process.kill()
        return max(keeper.result() for keeper in keepers)

    async def _keep(self, number: int) -> int:
        async def run_once() -> int:
            process = await self._start(number)
            if self._stopping.is_set():  # `run` has not seen this process
                process.terminate()
            return await process.wait()

        def warn(code: int, pause_s: float) -> None:
            _log.warning(
                "a process of tables has ended; starting it again",
                number=number,
                exit_code=code,
                pause_s=pause_s,
            )

        return await keep_running(run_once, self._stopping, warn)

    async def _start(self, number: int) -> Process:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            start_new_session=True,
            env={**os.environ, PROCESS_VARIABLE: f"{number}/{self._count}"},
        )
        self.processes[number] = process
        return process

    async def _stop(self, number: int, process: Process) -> None:
        if not await stop_process(process):
            _log.error("a process of tables did not stop and was killed", number=number)


def supervised_share() -> tuple[int, int] | None:
    """Return the number of this process and how many there are; None if it is not supervised."""
    value = os.environ.get(PROCESS_VARIABLE)
    if value is None:
        return None
    number, _, count = value.partition("/")
    return int(number), int(count)


def stop_without_supervisor(stop: Callable[[], None]) -> None:
    """Call `stop` when the supervisor is gone: standard input ends then."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1024):  # sys.stdin would be locked at the end of the process
            pass
        stop()

    threading.Thread(target=wait, name="barnabas-supervisor", daemon=True).start()
