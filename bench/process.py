"""CPU time and memory of a broker's process, from Linux."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return user and system time of a process so far, of all threads (proc(5), stat fields 14, 15)."""
    return parse_cpu_ticks(Path(f"/proc/{pid}/stat").read_text()) / CLOCK_TICKS_PER_S


def family_cpu_s(root: int) -> float:
    """Return the CPU time of a process and its living descendants so far."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
        except OSError:  # it has ended
            continue
        pid = int(path.parent.name)
        parents[pid] = int(stat.rpartition(")")[2].split()[1])
        ticks[pid] = parse_cpu_ticks(stat)
    return sum(ticks[pid] for pid in ticks if root in _line(pid, parents)) / CLOCK_TICKS_PER_S


def _line(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    while pid in parents:
        yield pid
        pid = parents[pid]


def parse_cpu_ticks(stat: str) -> int:
    """Parse the two fields after the command's name, which may itself contain spaces and parentheses."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def anonymous_bytes(pid: int) -> int:
    """Return memory of a process that is not backed by files (proc(5), smaps_rollup)."""
    return parse_anonymous_bytes(Path(f"/proc/{pid}/smaps_rollup").read_text())


def parse_anonymous_bytes(smaps_rollup: str) -> int:
    for line in smaps_rollup.splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    message = "smaps_rollup has no Anonymous line"
    raise ValueError(message)
