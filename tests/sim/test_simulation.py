"""Short simulations: nothing is lost, a seed repeats its run, and planted bugs are found."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sim.bugs import BUGS

ROOT = Path(__file__).resolve().parents[2]

#: Virtual seconds of a run, without its quiet phases.
DURATION_S = 20

#: A seed of each kind of run.
KILLED, FLUSHED, LOSSY = 1, 3, 5
CLUSTER = 3

#: Every change of the product moves the faults in time: then a bug is found by one of the next seeds.
SEEDS_COUNT = 6

#: The first seed that finds a bug, and the number of brokers.
FOUND_BY = {
    "acks-all-is-answered-before-replication": (2, CLUSTER),
    "any-replica-may-lead": (5, CLUSTER),
    "brokers-stay-in-sync-after-a-power-failure": (2, CLUSTER),
    "dead-brokers-are-not-fenced": (2, CLUSTER),
    "directories-are-not-flushed": (4, 1),
    "followers-do-not-truncate": (5, CLUSTER),
    "followers-truncate-to-their-high-watermark": (1, CLUSTER),
    "logs-are-not-recovered-after-a-crash": (7, 1),
    "markers-are-dropped": (1, 1),
    "producers-are-forgotten-by-a-start": (16, 1),
    "recovery-accepts-torn-batches": (10, 1),
    "retries-are-not-recognized": (2, 1),
    "unanswered-commits-are-taken-for-done": (1, 1),
    "writes-are-acknowledged-before-they-are-flushed": (4, 1),
}


def simulate(*options: str, hash_seed: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sim.run", "--duration", str(DURATION_S), *options],
        cwd=ROOT / "tests",
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("seed", "brokers"), [(KILLED, 1), (FLUSHED, 1), (LOSSY, 1), (KILLED, CLUSTER), (LOSSY, CLUSTER)]
)
def test_brokers_keep_their_promises_whatever_happens_and_a_seed_repeats_its_run(
    seed: int, brokers: int
) -> None:
    first, second = (simulate(str(seed), f"--brokers={brokers}", hash_seed=hash_seed) for hash_seed in (1, 2))
    assert first.returncode == 0, first.stdout + first.stderr
    assert re.search(r"digest [0-9a-f]{16}$", first.stdout.strip())
    assert first.stdout == second.stdout


@pytest.mark.parametrize("bug", sorted(FOUND_BY))
def test_a_planted_bug_is_found(bug: str) -> None:
    assert bug in BUGS
    first, brokers = FOUND_BY[bug]
    for seed in range(first, first + SEEDS_COUNT):
        ended = simulate(str(seed), f"--brokers={brokers}", "--bug", bug)
        assert ended.returncode in (0, 1), ended.stdout + ended.stderr
        if ended.returncode == 1:
            assert "FAILED" in ended.stdout, ended.stdout + ended.stderr
            return
    pytest.fail(f"not found by seeds {first} to {seed}")
