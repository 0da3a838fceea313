"""Resources of a command, measured by a small process: `python -m bench.used COMMAND ARGUMENT ...`.

Until exec Linux counts the parent's memory in a process's peak: a harness with a hundred MiB of its own would measure
those.
"""

import json
import resource
import subprocess
import sys
import time
from typing import NamedTuple

MIB_IN_KIB = 1024


class Used(NamedTuple):
    """Exit code of a command, its wall time, and the peak of its resident memory."""

    exit_code: int
    time_s: float
    memory_mib: float


def used_by(command: list[str]) -> Used:
    """Run a command and discard its output; errors are shown."""
    measuring = [sys.executable, "-m", "bench.used", *command]
    output = subprocess.run(measuring, stdout=subprocess.PIPE, check=True).stdout
    return Used(*json.loads(output))


def main() -> None:
    started_s = time.perf_counter()
    exit_code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=False).returncode
    time_s = time.perf_counter() - started_s
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps(Used(exit_code, time_s, peak_kib / MIB_IN_KIB)))


if __name__ == "__main__":
    main()
