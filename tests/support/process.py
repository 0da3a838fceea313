"""A broker in a process of its own, as `barnabas serve` starts it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from interop.brokers import free_ports

START_TIMEOUT_S = 30
COMMAND = [sys.executable, "-m", "barnabas", "serve"]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without broker settings, updated with `extra`."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("BARNABAS_")}
    return {**inherited, **(extra or {})}


def run_serve(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a broker that is expected to exit on its own."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
        env=clean_environment(environment),
    )


class BrokerProcess:
    """Runs until it is stopped; its output is kept."""

    def __init__(
        self,
        data: Path | None,
        *arguments: str,
        port: int = 0,
        environment: Mapping[str, str] | None = None,
        stdin: int | None = None,
    ) -> None:
        # the port stays reserved while the broker is down, so that it can be started again there
        listen = ["--listen", f"127.0.0.1:{port or free_ports(1)[0]}"] if port >= 0 else []
        where = ["--data", str(data)] if data else []
        self.process = subprocess.Popen(
            [*COMMAND, *where, *listen, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(environment),
        )
        self.errors: list[str] = []
        self._reading = threading.Thread(target=self._read_errors, daemon=True)
        self._reading.start()
        self.port = self._await_port()

    def _read_errors(self) -> None:
        assert self.process.stderr
        self.errors.extend(self.process.stderr)

    def _await_port(self) -> int:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line.startswith("Barnabas serves Kafka on "):
            self.process.kill()
            self.process.wait()
            self._reading.join()
            raise RuntimeError("".join([line, *self.errors]))
        return int(line.split(",")[0].rpartition(":")[2])

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def stderr(self) -> str:
        """Return its stderr so far; complete once it has ended."""
        return "".join(self.errors)

    @property
    def anonymous_bytes(self) -> int:
        """Return its private memory: neither files nor shared."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        [line] = [line for line in rollup.splitlines() if line.startswith("Anonymous:")]
        return int(line.split()[1]) << 10

    def kill(self) -> None:
        """SIGKILL: no time to write anything."""
        self.process.kill()
        self._ended()

    def terminate(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait(START_TIMEOUT_S)
        self._reading.join()
        assert self.process.stdout
        assert self.process.stderr
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
