"""The sessions of processes that share a SQLite store, each a locked file beside it.

The operating system releases the lock when the process ends. The file contains the time of the last heartbeat, which
shows a process that is stopped, and the UDP port where the process is notified of commits.
"""

import os
import struct
import threading
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from urllib.parse import quote, unquote

from barnabas.base.file_lock import FileLock, Locked, is_held

#: How long to wait for a lock: processes that check whether a session lives hold it for some microseconds.
_LOCK_TIMEOUT_S = 1.0
_LOCK_RETRY_S = 0.005

_HEARTBEAT = struct.Struct("<qq")  #: monotonic time in ns, UDP port


class SessionState(Enum):
    """What another process's session file shows."""

    LIVE = "live"
    ENDED = "ended"  #: no process holds the lock
    SILENT = "silent"  #: the process exists, but sends no heartbeats


class SessionFiles:
    """The session files of a store. All methods may block for a moment, so they run in threads.

    `heartbeat` has a thread of its own: a disk that is slow to flush a commit must not end a session.
    """

    def __init__(self, directory: Path, monotonic_ns: Callable[[], int], port: int, timeout_ms: int) -> None:
        """:param timeout_ms: A session ends when its last heartbeat is older than this."""
        self._directory = directory
        self._monotonic_ns = monotonic_ns
        self._port = port
        self._timeout_ns = timeout_ms * 1_000_000
        self._own: dict[str, FileLock] = {}
        self._changing = threading.Lock()  #: held while files of this process are opened, written and closed

    def acquire(self, key: str) -> None:
        """Create and lock the file of a session, if this process does not hold it already.

        :raises Locked: If another process holds it.
        """
        if key not in self._own:
            self._directory.mkdir(exist_ok=True)
            lock = self._lock(self._path(key))
            with self._changing:
                self._own[key] = lock
        self.heartbeat()

    def _lock(self, path: Path) -> FileLock:
        attempts_count = round(_LOCK_TIMEOUT_S / _LOCK_RETRY_S)
        for _ in range(attempts_count):
            try:
                return FileLock(path)
            except Locked:
                time.sleep(_LOCK_RETRY_S)
        raise Locked(str(path))

    def release(self, key: str) -> None:
        with self._changing:
            self._own.pop(key).release()

    def release_all(self) -> None:
        for key in list(self._own):
            self.release(key)

    def heartbeat(self) -> None:
        """Write the time into the files of this process."""
        with self._changing:
            for lock in self._own.values():
                lock.write(_HEARTBEAT.pack(self._monotonic_ns(), self._port))

    def others(self) -> list[str]:
        """Return the keys of all sessions of other processes, live or not."""
        if not self._directory.is_dir():
            return []
        keys = sorted(unquote(name) for name in os.listdir(self._directory))
        return [key for key in keys if key not in self._own]

    def state(self, key: str) -> SessionState:
        """Return whether the process that has opened a session lives."""
        if not is_held(self._path(key)):
            return SessionState.ENDED
        heartbeat_ns, _ = self._read(key)
        is_late = self._monotonic_ns() - heartbeat_ns > self._timeout_ns
        return SessionState.SILENT if is_late else SessionState.LIVE

    def ports(self) -> list[int]:
        """Return the UDP ports of the other processes; some may have ended."""
        return [port for key in self.others() if (port := self._read(key)[1])]

    def _read(self, key: str) -> tuple[int, int]:
        """Return the time and the port in a file. One without them was just created, or removed by hand."""
        path = self._path(key)
        content = path.read_bytes() if path.exists() else b""
        if len(content) < _HEARTBEAT.size:
            return self._monotonic_ns(), 0
        heartbeat_ns, port = _HEARTBEAT.unpack_from(content)
        return heartbeat_ns, port

    def _path(self, key: str) -> Path:
        return self._directory / quote(key, safe="")
