"""What a broker's process has used, as Linux tells it."""

import os
from pathlib import Path

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time of a process so far, all its threads together (proc(5), stat fields 14, 15)."""
    return parse_cpu_ticks(Path(f"/proc/{pid}/stat").read_text()) / CLOCK_TICKS_PER_S


def parse_cpu_ticks(stat: str) -> int:
    """The two fields behind the command's name, which may itself hold spaces and parentheses."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def anonymous_bytes(pid: int) -> int:
    """Memory of a process that no file backs (proc(5), smaps_rollup)."""
    return parse_anonymous_bytes(Path(f"/proc/{pid}/smaps_rollup").read_text())


def parse_anonymous_bytes(smaps_rollup: str) -> int:
    for line in smaps_rollup.splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    message = "smaps_rollup has no Anonymous line"
    raise ValueError(message)
