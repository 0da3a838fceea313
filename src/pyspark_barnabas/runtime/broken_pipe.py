"""Suppress the BrokenPipeError of Python workers whose socket Spark has closed.

Spark closes a worker's socket while the worker still writes its response. Over TCP this goes unnoticed; over a Unix
domain socket Spark's daemon, of which each worker is a fork, prints the traceback of a BrokenPipeError.
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
    """Make this worker process exit without a traceback, from its next task on.

    Does nothing outside Spark's Python worker processes.
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
