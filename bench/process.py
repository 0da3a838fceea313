"""What a broker's process has used, as Linux tells it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time of a process so far, all its threads together (proc(5), stat fields 14, 15)."""
    return parse_cpu_ticks(Path(f"/proc/{pid}/stat").read_text()) / CLOCK_TICKS_PER_S


def family_cpu_s(root: int) -> float:
    """What a process and all that descend from it have used so far, as far as they live."""
    return sum(map(parse_cpu_ticks, _family(root).values())) / CLOCK_TICKS_PER_S


def family_memory_bytes(root: int) -> int:
    """What a process and all that descend from it have in memory, what they share counted once (PSS)."""
    found = 0
    for pid in _family(root):
        try:
            found += parse_memory_bytes(Path(f"/proc/{pid}/smaps_rollup").read_text(), "Pss")
        except OSError:  # it has ended
            continue
    return found


def _family(root: int) -> dict[int, str]:
    """The line of proc(5), stat, of each of them."""
    stats: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(path.parent.name)] = path.read_text()
        except OSError:  # it has ended
            continue
    parents = {pid: int(stat.rpartition(")")[2].split()[1]) for pid, stat in stats.items()}
    return {pid: stat for pid, stat in stats.items() if root in _line(pid, parents)}


def _line(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    while pid in parents:
        yield pid
        pid = parents[pid]


def parse_cpu_ticks(stat: str) -> int:
    """The two fields behind the command's name, which may itself hold spaces and parentheses."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def anonymous_bytes(pid: int) -> int:
    """Memory of a process that no file backs (proc(5), smaps_rollup)."""
    return parse_memory_bytes(Path(f"/proc/{pid}/smaps_rollup").read_text(), "Anonymous")


def parse_memory_bytes(smaps_rollup: str, field: str) -> int:
    """One of the sums of a process's memory."""
    for line in smaps_rollup.splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    message = f"smaps_rollup has no {field} line"
    raise ValueError(message)
