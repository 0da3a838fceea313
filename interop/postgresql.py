"""PostgreSQL: a server as a child process in a directory that is removed afterwards, and its JDBC driver by Maven."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from interop import maven
from interop.brokers import free_ports

HERE = Path(__file__).resolve().parent
POM = HERE / "postgresql" / "pom.xml"
JARS = HERE / ".cache" / "postgresql-driver"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
PROBE_INTERVAL_S = 0.05

#: Where Debian puts what is not on the PATH, a directory for each version.
DEBIAN = Path("/usr/lib/postgresql")
#: As whom a server runs that root starts: PostgreSQL refuses root.
UNPRIVILEGED = "postgres"
USER, PASSWORD = "shopkeeper", "open sesame"


class Server(NamedTuple):
    """A running server: the URL of its database, and whose it is."""

    url: str
    user: str
    password: str


def fetch() -> Path:
    """Bring the driver's jar into the cache; gives its directory."""
    return maven.jars(POM, JARS)


def driver() -> str:
    """The driver's jar."""
    [jar] = fetch().glob("*.jar")
    return str(jar)


def program(name: str) -> str | None:
    """One of PostgreSQL's programs; of several versions the newest. None where it is not installed."""
    there = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    return shutil.which(name) or (str(there[-1]) if there else None)


@contextlib.contextmanager
def postgresql() -> Iterator[Server]:
    """A server with an empty database, on a free port of loopback.

    Raises:
        RuntimeError: it did not start; the message quotes its output.
    """
    [port] = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="postgresql-") as home:
        _make(Path(home))
        process = _start(Path(home), port)
        try:
            _wait(Path(home), process, port)
            yield Server(f"jdbc:postgresql://127.0.0.1:{port}/postgres", USER, PASSWORD)
        finally:
            process.send_signal(signal.SIGINT)  # its "fast" shutdown: whoever is connected is not waited for
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _command(name: str) -> str:
    found = program(name)
    if found is None:
        raise RuntimeError(
            f"there is no {name}: install PostgreSQL's server, on Debian the package postgresql"
        )
    return found


def _as_whom() -> dict[str, str | int]:
    if os.geteuid() != 0:
        return {}
    return {"user": UNPRIVILEGED, "group": pwd.getpwnam(UNPRIVILEGED).pw_gid}


def _make(home: Path) -> None:
    secret = home / "password"
    secret.write_text(PASSWORD)
    if os.geteuid() == 0:
        for place in (home, secret):
            shutil.chown(place, UNPRIVILEGED)
    options = ["-U", USER, f"--pwfile={secret}", "-A", "scram-sha-256", "--no-sync", "-E", "UTF8"]
    ended = subprocess.run(
        [_command("initdb"), "-D", home / "data", *options],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        **_as_whom(),
    )
    if ended.returncode:
        raise RuntimeError(f"initdb failed:\n{ended.stdout}{ended.stderr}")


def _start(home: Path, port: int) -> subprocess.Popen[bytes]:
    options = ["-p", str(port), "-k", str(home), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    with (home / "log").open("wb") as log:
        return subprocess.Popen(
            [_command("postgres"), "-D", home / "data", *options],
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **_as_whom(),
        )


def _wait(home: Path, process: subprocess.Popen[bytes], port: int) -> None:
    end_s = time.monotonic() + START_TIMEOUT_S
    asking = [_command("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    while subprocess.run(asking, check=False).returncode:
        if process.poll() is not None or time.monotonic() > end_s:
            raise RuntimeError(f"PostgreSQL does not answer:\n{(home / 'log').read_text(errors='replace')}")
        time.sleep(PROBE_INTERVAL_S)
