"""`barnabas tables run` in processes of its own."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.process import START_TIMEOUT_S, clean_environment
from support.processes import below
from support.waiting import until

COMMAND = [sys.executable, "-m", "barnabas", "tables"]


class RunningService:
    """A supervisor and its processes."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def workers(self) -> list[int]:
        """Return the ids of the processes that keep tables."""
        return list(below(self.process.pid))

    def kill_workers(self) -> None:
        """Kill all of them, and wait until others have begun."""
        killed = set(self.workers())
        for pid in killed:
            subprocess.run(["kill", "-9", str(pid)], check=False)
        until(lambda: bool(set(self.workers()) - killed))

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(START_TIMEOUT_S)


@contextmanager
def table_service(bootstrap: str, log: Path, *options: str) -> Iterator[RunningService]:
    """Run the service until the block ends."""
    command = [*COMMAND, "run", "--bootstrap", bootstrap, *options]
    with log.open("w") as output:
        process = subprocess.Popen(command, env=clean_environment(), stderr=output, text=True)
    service = RunningService(process, log)
    try:
        yield service
    finally:
        if process.poll() is None:
            service.stop()
