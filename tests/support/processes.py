"""Find the processes below a process, and kill one of them."""

import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path


def below(pid: int) -> Iterator[int]:
    """Return all descendants of a process."""
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            children.append(int(path.parent.name))
    for child in children:
        yield child
        yield from below(child)


def descendants(pid: int, name: str) -> list[int]:
    """Return the descendants whose command line contains `name`, the deepest first."""
    return [each for each in reversed(list(below(pid))) if name in _command(each)]


def kill_one(pids: Iterable[int]) -> bool:
    """Send SIGKILL to the first that still exists; return whether there was one."""
    return any(kill(pid) for pid in pids)


def kill(pid: int) -> bool:
    """Send SIGKILL; return False if the process has already ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
