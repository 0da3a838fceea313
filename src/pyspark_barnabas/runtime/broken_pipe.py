"""Python workers that Spark lets go of end without a word.

Spark closes a worker's socket, and the worker still answers. Over TCP nobody notices that nobody listens any more; over
a Unix domain socket Spark's daemon, of which each worker is a fork, prints the traceback of a BrokenPipeError.
"""

import os
import socket
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

from pyspark_barnabas.runtime.gc_freeze import REUSED

_DAEMON = "pyspark.daemon"

Worker = Callable[[socket.socket, bool], int]


def suppress_broken_pipe(environment: Mapping[str, str] = os.environ, main: ModuleType | None = None) -> None:
    """Call it in a worker's process: from its next task on it ends quietly.

    Does nothing outside of Spark's own Python processes.
    """
    main = main or sys.modules["__main__"]
    is_daemon = getattr(getattr(main, "__spec__", None), "name", None) == _DAEMON
    if REUSED in environment and is_daemon and "worker" in vars(main):
        vars(main)["worker"] = _quiet(vars(main)["worker"])


def _quiet(worker: Worker) -> Worker:
    def run(sock: socket.socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except BrokenPipeError:
            return 1

    return run
