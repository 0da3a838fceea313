"""Short simulations: nothing is lost, a seed repeats its run, and planted bugs are found."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sim.bugs import BUGS
from sim.found_by import CLUSTER, DURATION_S, FOUND_BY, FOUND_IN_THE_PRODUCT, SEEDS_COUNT

ROOT = Path(__file__).resolve().parents[2]

#: A seed of each kind of run.
KILLED, FLUSHED, LOSSY = 2, 3, 5


def simulate(*options: str, hash_seed: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sim.run", "--duration", str(DURATION_S), *options],
        cwd=ROOT / "tests",
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("seed", "brokers"), [(FLUSHED, 1), (LOSSY, 1), (LOSSY, CLUSTER)])
def test_brokers_keep_their_promises_whatever_happens(seed: int, brokers: int) -> None:
    ended = simulate(str(seed), f"--brokers={brokers}")
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("seed", FOUND_IN_THE_PRODUCT)
def test_seeds_that_have_found_bugs_of_the_product_pass(seed: int) -> None:
    ended = simulate(str(seed), f"--brokers={CLUSTER}")
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("brokers", [1, CLUSTER])
def test_a_seed_repeats_its_run(brokers: int) -> None:
    first, second = (
        simulate(str(KILLED), f"--brokers={brokers}", hash_seed=hash_seed) for hash_seed in (1, 2)
    )
    assert first.returncode == 0, first.stdout + first.stderr
    assert re.search(r"digest [0-9a-f]{16}$", first.stdout.strip())
    assert first.stdout == second.stdout


@pytest.mark.parametrize("bug", FOUND_BY)
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
