"""Barnabas as users start it: ``barnabas serve`` as a child process."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from interop.brokers import Broker, consecutive_ports, launch

COMMAND = Path(sys.executable).with_name("barnabas")


#: Keeps Python from compiling modules at each start. Installed packages are compiled, and so is this one.
NOT_COMPILED = "PYTHONDONTWRITEBYTECODE"


def start(
    home: Path,
    properties: Mapping[str, str] | None = None,
    port: int | None = None,
    listeners: Sequence[str] = (),
    executable: Path = COMMAND,
    brokers_count: int = 1,
) -> Broker:
    """Start Barnabas on ``home/data``; return once it responds. Its log is in ``home/barnabas.log``.

    ``listeners`` are additional ones, as NAME://HOST:PORT. Several brokers run as ``serve --brokers``: their
    ports and node ids count up from the first, and topics have a replica on each of them.
    """
    data_dir = home / "data"
    data_dir.mkdir(parents=True, exist_ok=True)
    bootstrap = f"127.0.0.1:{port or consecutive_ports(brokers_count)}"
    replicated = {"default.replication.factor": str(brokers_count)} if brokers_count > 1 else {}
    given = {"log.dirs": str(data_dir), **replicated, **(properties or {})}
    settings = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
    listen = ",".join([f"PLAINTEXT://{bootstrap}", *listeners])
    several = ["--brokers", str(brokers_count)] if brokers_count > 1 else []
    command = [str(executable), "serve", *several, "--listen", listen, *settings]
    environment = {name: value for name, value in os.environ.items() if name != NOT_COMPILED}
    return launch("barnabas", command, bootstrap, data_dir, home / "barnabas.log", environment, brokers_count)


@contextlib.contextmanager
def barnabas(properties: Mapping[str, str] | None = None, port: int | None = None) -> Iterator[Broker]:
    """Run Barnabas on a free port (or ``port``) in a directory that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="barnabas-") as home:
        broker = start(Path(home), properties, port)
        try:
            yield broker
        finally:
            broker.stop()
