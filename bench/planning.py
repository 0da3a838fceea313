"""Time and memory of a plan over many topics of one partition each: `make bench ARGS='--only plan'`.

`barnabas` makes the plan for either broker, and each has the topics from one `barnabas apply`.
"""

import tempfile
from collections.abc import Mapping

from bench.used import Used, used_by
from interop import candidate

#: Exit codes of `barnabas plan`: no changes, changes.
SAME, DIFFERENT = 0, 2


class PlanFailed(Exception):
    """The command ended with an unexpected exit code."""


def declaration(topics_count: int, retention_ms: int) -> str:
    """Return a file that declares topics of one partition, each with two settings."""
    topics = (
        f"  planned-{number}:\n    partitions: 1\n    configs:\n"
        f"      retention.ms: {retention_ms}\n      cleanup.policy: delete\n"
        for number in range(topics_count)
    )
    return "topics:\n" + "".join(topics)


def create(bootstrap: str, topics_count: int) -> None:
    """Create the declared topics."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(declaration(topics_count, 86_400_000))
        file.flush()
        _command(SAME, "apply", file.name, "--yes", "--json", "--bootstrap", bootstrap)


def plans(bootstrap: str, topics_count: int) -> Mapping[str, float]:
    """Return seconds and MiB of a plan without changes, and of one with a change in each topic."""
    measured = {}
    for name, retention_ms, exit_code in (("same", 86_400_000, SAME), ("changed", 90_000_000, DIFFERENT)):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(declaration(topics_count, retention_ms))
            file.flush()
            used = _command(exit_code, "plan", file.name, "--json", "--bootstrap", bootstrap)
        measured |= {f"{name}_time": used.time_s, f"{name}_memory": used.memory_mib}
    return measured


def _command(exit_code: int, *arguments: str) -> Used:
    used = used_by([str(candidate.COMMAND), *arguments])
    if used.exit_code != exit_code:
        message = f"barnabas {' '.join(arguments)}: exit code {used.exit_code}, {exit_code} expected"
        raise PlanFailed(message)
    return used
