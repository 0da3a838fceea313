"""Search for the seeds that find planted bugs: ``python -m sim.search [BUG...]``; without names, for all bugs.

Each bug is tried with its number of brokers and some seeds, beginning with the one of `FOUND_BY`. After a change of the
product, a bug may be found by another seed.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sim.bugs import BUGS
from sim.found_by import CLUSTER, DURATION_S, FOUND_BY, SEEDS_COUNT

DIRECTORY = Path(__file__).parents[1]
#: A bug may let a run stand still.
TIMEOUT_S = 300


@dataclass(frozen=True)
class Attempt:
    """A run with a planted bug."""

    bug: str
    brokers: int
    seed: int
    is_found: bool
    report: str  #: the first line that tells what is wrong, or what went wrong with the run


def try_seed(bug: str, brokers: int, seed: int) -> Attempt:
    """Run a seed with a planted bug in a process of its own."""
    command = [sys.executable, "-m", "sim.run", str(seed), f"--duration={DURATION_S}", f"--brokers={brokers}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "0"}
    try:
        ended = subprocess.run(
            [*command, "--bug", bug],
            cwd=DIRECTORY,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return Attempt(bug, brokers, seed, False, "timeout")
    is_found = ended.returncode == 1 and "FAILED" in ended.stdout
    lines = (ended.stdout if is_found or ended.returncode == 0 else ended.stderr).strip().splitlines()
    return Attempt(bug, brokers, seed, is_found, lines[0 if is_found else -1].strip() if lines else "")


def search(bug: str, first: int, brokers: int, seeds_count: int) -> Iterator[Attempt]:
    """Try seeds until one finds the bug."""
    for seed in range(first, first + seeds_count):
        attempt = try_seed(bug, brokers, seed)
        yield attempt
        if attempt.is_found:
            return


def main(arguments: list[str]) -> int:
    """Return 1 if a bug is not found."""
    parser = argparse.ArgumentParser(prog="sim.search", description=__doc__)
    parser.add_argument("bugs", nargs="*", metavar="BUG", help="default: all")
    parser.add_argument("--first", type=int, help="first seed, instead of that of FOUND_BY")
    parser.add_argument("--seeds", type=int, default=SEEDS_COUNT, help="how many to try")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    options = parser.parse_args(arguments)

    def search_bug(bug: str) -> bool:
        first, brokers = FOUND_BY.get(bug, (1, CLUSTER))
        attempts = list(search(bug, options.first or first, brokers, options.seeds))
        last = attempts[-1]
        found = f"seed {last.seed}" if last.is_found else f"NOT FOUND by {len(attempts)} seeds"
        print(f"{bug} | {brokers} | {found} | {last.report[:160]}", flush=True)
        return last.is_found

    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(search_bug, options.bugs or sorted(BUGS)))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{sum(found)} of {len(found)} bugs are found; {usage.ru_utime + usage.ru_stime:.0f} s of CPU")
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
