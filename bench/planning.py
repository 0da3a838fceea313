"""How long a plan over many topics takes, and how much memory: `python -m bench.run --only plan`."""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from interop import candidate

#: Exit codes of `barnabas plan`: nothing to do, changes.
SAME, DIFFERENT = 0, 2
MIB_IN_KIB = 1024


class PlanFailed(Exception):
    """The command ended with another exit code than was to be expected."""


def declaration(topics_count: int, retention_ms: int) -> str:
    """A file with as many topics of one partition, each with two settings."""
    topics = (
        f"  planned-{number}:\n    partitions: 1\n    configs:\n"
        f"      retention.ms: {retention_ms}\n      cleanup.policy: delete\n"
        for number in range(topics_count)
    )
    return "topics:\n" + "".join(topics)


def create(bootstrap: str, topics_count: int) -> None:
    """Bring the declared topics about."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(declaration(topics_count, 86_400_000))
        file.flush()
        _command(SAME, "apply", file.name, "--yes", "--json", "--bootstrap", bootstrap)


def plans(bootstrap: str, topics_count: int) -> Mapping[str, float]:
    """Seconds and MiB of a plan that finds nothing to do, and of one that finds a change in each topic."""
    measured = {}
    for name, retention_ms, exit_code in (("same", 86_400_000, SAME), ("changed", 90_000_000, DIFFERENT)):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(declaration(topics_count, retention_ms))
            file.flush()
            time_s, memory_mib = _command(exit_code, "plan", file.name, "--json", "--bootstrap", bootstrap)
        measured |= {f"{name}_time": time_s, f"{name}_memory": memory_mib}
    return measured


def _command(exit_code: int, *arguments: str) -> tuple[float, float]:
    """Wall time in seconds and the peak of resident memory in MiB."""
    started_s = time.perf_counter()
    with Path(os.devnull).open("wb") as nowhere:
        process = subprocess.Popen([candidate.COMMAND, *arguments], stdout=nowhere)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != exit_code:
        message = f"barnabas {' '.join(arguments)}: exit code {process.returncode}, {exit_code} expected"
        raise PlanFailed(message)
    return time.perf_counter() - started_s, used.ru_maxrss / MIB_IN_KIB
