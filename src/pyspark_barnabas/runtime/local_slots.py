"""How many tasks a local master runs at a time, if the command line of the JVM has it."""

import os
import re
from pathlib import Path

#: In the arguments of `spark-submit`, with which PySpark starts the JVM, too.
_LOCAL = re.compile(r"(?:spark\.master=|--master(?:=|\0))local(?:\[(\d+|\*)(?:,\d+)?\])?\0")

_PROCESSES = Path("/proc")


def local_slots_count(processes: Path = _PROCESSES, pid: int | None = None) -> int | None:
    """Return the number of slots of a master `local[N]`; None for another one, or if that cannot be seen.

    Spark does not tell a data source in Python how many tasks run at a time. With a local master its planner is a
    descendant of the JVM that runs them.

    :param pid: The process of which the JVM is an ancestor; this one by default.
    """
    ancestor = os.getpid() if pid is None else pid
    try:
        while ancestor > 1:
            found = _LOCAL.search((processes / str(ancestor) / "cmdline").read_text(errors="replace"))
            if found is not None:
                return _slots_of(found[1])
            # After the name in parentheses, which may contain anything: state, process id of the parent.
            status = (processes / str(ancestor) / "stat").read_text(errors="replace")
            ancestor = int(status.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        pass  # not Linux, or a process that we may not look at
    return None


def _slots_of(count: str | None) -> int:
    if count is None:
        return 1
    return len(os.sched_getaffinity(0)) if count == "*" else int(count)
