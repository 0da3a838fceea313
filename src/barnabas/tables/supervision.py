"""Runs services as processes and starts those again that end, however they end."""

import asyncio
import os
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence

from barnabas.telemetry.logs import get_logger

#: Pauses before a process that has ended is started again; the last one repeats.
RESTART_PAUSES_S = (0.0, 0.5, 2.0, 10.0)
#: A process that has run for so long had no problem with its start.
_STABLE_S = 60.0
#: How long a process may take to stop before it is killed.
_STOP_TIMEOUT_S = 60.0
#: The exit code of a service whose options are not valid: it is not started again.
EXIT_NOT_VALID = 2

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
        self._stopping.set()

    async def run(self) -> int:
        """Run until `stop`, or until a process says that its options are not valid; return the largest exit code."""
        try:
            codes = await asyncio.gather(*(self._keep(number) for number in range(self._count)))
        finally:
            for process in self.processes.values():
                if process.returncode is None:
                    process.kill()
        return max(codes)

    async def _keep(self, number: int) -> int:
        loop = asyncio.get_running_loop()
        failures_count = 0
        while True:
            started_s = loop.time()
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                start_new_session=True,
                env={**os.environ, PROCESS_VARIABLE: f"{number}/{self._count}"},
            )
            self.processes[number] = process
            code = await self._ended(process)
            if self._stopping.is_set() or code == EXIT_NOT_VALID:
                self._stopping.set()
                return code
            failures_count = 1 if loop.time() - started_s > _STABLE_S else failures_count + 1
            pause_s = RESTART_PAUSES_S[min(failures_count, len(RESTART_PAUSES_S)) - 1]
            _log.warning(
                "a process of tables has ended; starting it again",
                number=number,
                exit_code=code,
                pause_s=pause_s,
            )
            if await self._stops_within(pause_s):
                return 0

    async def _ended(self, process: Process) -> int:
        """Wait for the end of a process, which is stopped when it is time."""
        ended = asyncio.ensure_future(process.wait())
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ended.done():
            process.terminate()
            try:
                async with asyncio.timeout(_STOP_TIMEOUT_S):
                    await asyncio.shield(ended)
            except TimeoutError:
                _log.error("a process of tables does not stop; it is killed")
                process.kill()
        return await ended

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True


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
