"""Run simulations: ``python -m sim.run SEED...``, or random seeds for some minutes with ``--minutes``.

Brokers serve producers, transactional producers, a reader and a group on virtual time, while processes, disks, network
and store fail. At the end everything that the applications know is compared with the logs.
The same seed gives the same run: its digest covers all that crossed the network and all changes of files.
"""

import argparse
import gc
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from barnabas.telemetry.logs import ROOT, configure, set_level
from sim.bugs import BUGS
from sim.clock import SimulatedClock
from sim.loop import START_S
from sim.simulation import DURATION_S, Simulation

REPORTED_COUNT_MAX = 20
SEED_MAX = 1_000_000_000


def main(arguments: list[str]) -> int:
    """Return 1 if a simulation has found something wrong."""
    options = _options(arguments)
    set_level(ROOT, "INFO" if options.log else "FATAL")
    if options.bug:
        BUGS[options.bug]()
    results = [_run_in_child(seed, options) for seed in _seeds(options)]
    if len(results) > 1:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = (usage.ru_utime + usage.ru_stime) / len(results)
        print(f"{len(results)} runs, {results.count(False)} of them failed, {cpu_s:.1f} s of CPU for each")
    return int(not all(results))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sim.run", description=__doc__)
    parser.add_argument("seeds", type=int, nargs="*", metavar="SEED")
    parser.add_argument("--minutes", type=float, default=0.0, help="run random seeds for so long")
    parser.add_argument("--duration", type=float, default=DURATION_S, help="virtual seconds of a run")
    parser.add_argument("--brokers", type=int, default=1, help="brokers, which replicate all topics")
    parser.add_argument("--bug", choices=sorted(BUGS), help="plant a bug, which the simulation should find")
    parser.add_argument("--events", action="store_true", help="print what happened to the broker")
    parser.add_argument("--log", action="store_true", help="print the log of the broker")
    return parser.parse_args(arguments)


def _seeds(options: argparse.Namespace) -> Iterator[int]:
    yield from options.seeds
    ends_s = time.monotonic() + options.minutes * 60
    while time.monotonic() < ends_s:
        yield random.SystemRandom().randrange(SEED_MAX)


def _run_in_child(seed: int, options: argparse.Namespace) -> bool:
    """Run a simulation in a child process, and print its result; return whether all is well.

    A process can end without running the tasks of killed brokers to their ends.
    """
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status) == 0
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="barnabas-sim-") as root:
        gc.disable()  # what a short run leaves is not worth the time
        simulation = Simulation(seed, Path(root), options.duration, options.brokers)
        if options.log:  # with the times of the events
            configure("console", "INFO", SimulatedClock(simulation.loop))
        wrong = simulation.run()
    _report(simulation, seed, wrong, prints_events=options.events)
    sys.stdout.flush()
    os._exit(int(bool(wrong)))


def _report(simulation: Simulation, seed: int, wrong: list[str], *, prints_events: bool) -> None:
    if prints_events:
        print(*simulation.events, sep="\n")
    for line in wrong[:REPORTED_COUNT_MAX]:
        print(f"  {line}")
    journal = simulation.journal
    print(
        f"seed {seed} ({simulation.kind.value}): {'FAILED' if wrong else 'ok'}, {len(journal.records)} records, "
        f"{len(journal.transactions)} transactions, {len(simulation.events)} events, "
        f"{simulation.loop.time() - START_S:.0f} virtual seconds, "
        f"digest {simulation.loop.trace.digest()}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
