"""Run all faults on a cluster: ``python -m interop.soak_cluster [SCENARIO...]``.

What clients saw is written to docs/reliability.md. With names of scenarios only these run, and their rows are replaced.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from interop.etcd_clusters import EtcdCluster, running
from interop.faults import FAULTS, PROPERTIES, Result, Scenario, scenarios
from interop.load import PRODUCERS

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "reliability.md"
HEADING = "## Real processes"


def row(result: Result) -> str:
    """Return the table's row of a scenario."""
    cells = [
        result.scenario.fault,
        result.scenario.target,
        *(f"{result.stalls_s[name]:.1f}" for name in PRODUCERS),
        f"{len(result.acknowledged):,}",
        str(len(result.violations)),
    ]
    return f"| {' | '.join(cells)} |"


def with_rows(document: str, results: Sequence[Result]) -> str:
    """Replace or add the rows of these scenarios in the table; rows are in the order of the scenarios."""
    before, heading, after = document.partition(HEADING)
    lines = (heading + after).splitlines(keepends=True)
    ruler = next(at for at, line in enumerate(lines) if line.startswith("| ---"))
    end = next((at for at in range(ruler, len(lines)) if not lines[at].startswith("|")), len(lines))
    rows = {_scenario_of(line): line for line in lines[ruler + 1 : end]}
    rows |= {_scenario_of(row(result)): row(result) + "\n" for result in results}
    order = [(scenario.fault, scenario.target) for scenario in scenarios()]
    ordered = sorted(rows, key=order.index)
    return before + "".join([*lines[: ruler + 1], *(rows[key] for key in ordered), *lines[end:]])


def _scenario_of(line: str) -> tuple[str, str]:
    _, fault, target, *_ = (cell.strip() for cell in line.split("|"))
    return fault, target


def run(chosen: Sequence[Scenario], directory: Path) -> list[Result]:
    """Run scenarios on one cluster, and write each result; a cluster that a scenario has broken is replaced."""
    results: list[Result] = []
    remaining = list(chosen)
    while remaining:
        with running(PROPERTIES) as cluster:
            is_usable = True
            while remaining and is_usable:
                is_usable = attempt(cluster, remaining.pop(0), directory, results)
                DOCUMENT.write_text(with_rows(DOCUMENT.read_text(), results))
    return results


def attempt(cluster: EtcdCluster, scenario: Scenario, directory: Path, results: list[Result]) -> bool:
    """Add the result of a scenario; return whether the cluster can be used for the next one."""
    started_s = time.monotonic()
    logs = directory / str(scenario)
    logs.mkdir(parents=True, exist_ok=True)
    result = Result(scenario, stalls_s=dict.fromkeys(PRODUCERS, float("nan")))
    try:
        result = scenario.run(cluster, logs)
    except Exception as error:
        result.violations.append(f"{type(error).__name__}: {error}")
    results.append(result)
    stalls = " ".join(f"{name} {stall_s:.1f}" for name, stall_s in result.stalls_s.items())
    took_s = time.monotonic() - started_s
    print(
        f"{scenario}: {stalls}; {len(result.acknowledged)} acknowledged; {took_s:.0f} s; load {os.getloadavg()[0]:.1f}"
    )
    for violation in result.violations:
        print(f"  {violation}")
    sys.stdout.flush()
    return not result.violations


def main() -> int:
    by_name = {str(scenario): scenario for scenario in scenarios()}
    parser = argparse.ArgumentParser(prog="interop.soak_cluster", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(by_name))
    options = parser.parse_args()
    chosen = [by_name[name] for name in options.scenarios] or list(by_name.values())
    directory = Path(tempfile.mkdtemp(prefix="soak-cluster-"))
    print(f"{len(chosen)} scenarios with {len(FAULTS)} faults; the logs are in {directory}", flush=True)
    results = run(chosen, directory)
    return 1 if any(result.violations for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
