"""Workers forked by Spark's daemon whose socket is closed, and their output."""

import os
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest

from pyspark_barnabas.runtime.broken_pipe import suppress_broken_pipe
from pyspark_barnabas.runtime.gc_freeze import REUSED

ENDS_WITHIN_S = 60
#: A worker's behaviour for each task: it responds, even if its socket is closed.
WORKER = """
def main(infile, outfile):
    command = infile.read(1)
    if command == b"q":
        import pyspark_barnabas
    outfile.write(b"!")
    outfile.flush()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """Create a directory whose name is short enough for a socket in it."""
    with TemporaryDirectory(prefix="barnabas-") as directory:
        yield Path(directory)


@pytest.mark.parametrize(("command", "is_quiet"), [(b"q", True), (b"-", False)])
def test_a_worker_with_the_package_exits_silently(command: bytes, is_quiet: bool, home: Path) -> None:
    (home / "pyspark_worker_of_test.py").write_text(WORKER)
    settings = {
        "PYTHONPATH": os.pathsep.join([str(home), *filter(None, sys.path)]),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(home),
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
        REUSED: "1",
    }
    with subprocess.Popen(
        [sys.executable, "-m", "pyspark.daemon", "pyspark_worker_of_test"],
        env={**os.environ, **settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as daemon:
        assert daemon.stdout is not None
        (size_bytes,) = struct.unpack(">i", daemon.stdout.read(4))
        path = daemon.stdout.read(size_bytes).decode()
        with socket.socket(socket.AF_UNIX) as jvm:
            jvm.connect(path)
            (pid,) = struct.unpack(">i", jvm.recv(4))
            worker = os.pidfd_open(pid)
            jvm.sendall(command)
            assert jvm.recv(1) == b"!"
        poll = select.poll()  # unlike select, for any number of open files
        poll.register(worker, select.POLLIN)
        ended = poll.poll(ENDS_WITHIN_S * 1000)
        os.close(worker)
        _, stderr = daemon.communicate()
    assert ended
    assert ("BrokenPipeError" not in stderr.decode()) is is_quiet


@pytest.mark.parametrize(
    ("environment", "name"), [({}, "pyspark.daemon"), ({REUSED: "1"}, "notebook"), ({REUSED: "1"}, None)]
)
def test_other_processes_are_not_changed(environment: dict[str, str], name: str | None) -> None:
    main = ModuleType("__main__")
    main.__spec__ = None if name is None else ModuleSpec(name, None)
    vars(main)["worker"] = "somebody else's"
    suppress_broken_pipe(environment, main)
    assert vars(main)["worker"] == "somebody else's"


def test_a_daemon_without_the_wrapped_function_is_not_changed() -> None:
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec("pyspark.daemon", None)
    suppress_broken_pipe({REUSED: "1"}, main)
    assert "worker" not in vars(main)
