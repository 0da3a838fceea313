"""Database servers as child processes in directories that are removed afterwards, and JDBC drivers by Maven."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from interop import maven
from interop.brokers import free_ports

HERE = Path(__file__).resolve().parent
POM = HERE / "drivers" / "pom.xml"
JARS = HERE / ".cache" / "drivers"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
PROBE_INTERVAL_S = 0.05

#: Where Debian installs PostgreSQL's programs, outside of PATH, in a directory for each version.
DEBIAN = Path("/usr/lib/postgresql")
#: Debian's packages, each with a program that shows whether it is installed.
PACKAGES = {"postgresql": "initdb", "mariadb-server": "mariadbd"}
USER, PASSWORD = "shopkeeper", "open sesame"


class Server(NamedTuple):
    """A running server: the URL of its database, and the user."""

    url: str
    user: str
    password: str


def fetch() -> Path:
    """Fetch the drivers' jars into the cache; return their directory."""
    return maven.jars(POM, JARS)


def drivers() -> str:
    """Return the drivers' jars in the form of `spark.jars`."""
    return ",".join(sorted(str(jar) for jar in fetch().glob("*.jar")))


def program(name: str) -> str | None:
    """Return a server's program, of the newest version; None if it is not installed."""
    there = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    return shutil.which(name) or (str(there[-1]) if there else None)


@contextlib.contextmanager
def postgresql() -> Iterator[Server]:
    """Run PostgreSQL with an empty database on a free loopback port.

    Raises:
        RuntimeError: it did not start; the message quotes its output.
    """
    [port] = free_ports(1)
    with _home("postgres") as home:
        home.write("password", PASSWORD)
        login = [f"--username={USER}", f"--pwfile={home.path}/password", "--auth=scram-sha-256"]
        home.run("initdb", "-D", home.data, *login, "--no-sync", "--encoding=UTF8")
        settings = ["-k", home.path, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        # SIGINT is its "fast" shutdown, which does not wait for clients
        server = home.serving(signal.SIGINT, "postgres", "-D", home.data, "-p", str(port), *settings)
        with server as process:
            home.wait(process, "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port))
            yield Server(f"jdbc:postgresql://127.0.0.1:{port}/postgres", USER, PASSWORD)


@contextlib.contextmanager
def mariadb() -> Iterator[Server]:
    """Run MariaDB with an empty database `shop` on a free loopback port.

    Raises:
        RuntimeError: it did not start; the message quotes its output.
    """
    [port] = free_ports(1)
    with _home("mysql") as home:
        who = f"'{USER}'@'%'"
        statements = (
            "CREATE DATABASE shop CHARACTER SET utf8mb4",
            f"CREATE USER {who} IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL ON shop.* TO {who}",
        )
        home.write("begin.sql", "".join(f"{each};\n" for each in statements))
        partitions = [f"--datadir={home.data}", f"--tmpdir={home.path}"]
        home.run("mariadb-install-db", "--no-defaults", "--skip-test-db", *partitions)
        settings = [f"--init-file={home.path}/begin.sql", "--innodb-flush-log-at-trx-commit=0"]
        sockets = [f"--socket={home.path}/socket", "--bind-address=127.0.0.1", f"--port={port}"]
        server = home.serving(signal.SIGTERM, "mariadbd", "--no-defaults", *partitions, *settings, *sockets)
        with server as process:
            home.wait(process, "mariadb-admin", "--no-defaults", "-h", "127.0.0.1", f"--port={port}", "ping")
            yield Server(f"jdbc:mariadb://127.0.0.1:{port}/shop", USER, PASSWORD)


class _Home(NamedTuple):
    """A server's directory, and its user: servers do not run as root."""

    path: Path
    owner: Mapping[str, str | int]

    @property
    def data(self) -> Path:
        return self.path / "data"

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)
        if self.owner:
            shutil.chown(self.path / name, self.owner["user"])

    def run(self, name: str, *arguments: str | Path) -> None:
        command = [_installed(name), *arguments]
        ended = subprocess.run(
            command, cwd=self.path, capture_output=True, text=True, check=False, **self.owner
        )
        if ended.returncode:
            raise RuntimeError(f"{name} failed:\n{ended.stdout}{ended.stderr}")

    @contextlib.contextmanager
    def serving(
        self, stop: signal.Signals, name: str, *arguments: str | Path
    ) -> Iterator[subprocess.Popen[bytes]]:
        with (self.path / "log").open("wb") as log:
            command = [_installed(name), *arguments]
            process = subprocess.Popen(
                command, cwd=self.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.owner
            )
        try:
            yield process
        finally:
            process.send_signal(stop)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def wait(self, process: subprocess.Popen[bytes], name: str, *arguments: str | Path) -> None:
        """Wait until that program reports that the server responds."""
        end_s = time.monotonic() + START_TIMEOUT_S
        asking = [_installed(name), *arguments]
        while subprocess.run(asking, capture_output=True, check=False).returncode:
            if process.poll() is not None or time.monotonic() > end_s:
                output = (self.path / "log").read_text(errors="replace")
                raise RuntimeError(f"{process.args[0]} does not answer:\n{output}")
            time.sleep(PROBE_INTERVAL_S)


@contextlib.contextmanager
def _home(user: str) -> Iterator[_Home]:
    """Create a directory, owned by that user if this is root."""
    owner = {"user": user, "group": pwd.getpwnam(user).pw_gid} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix=f"{user}-") as path:
        if owner:
            shutil.chown(path, user)
        yield _Home(Path(path), owner)


def _installed(name: str) -> str:
    found = program(name)
    if found is None:
        raise RuntimeError(f"there is no {name}: on Debian it is in the packages {', '.join(PACKAGES)}")
    return found
