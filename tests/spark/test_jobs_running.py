"""Progress of a running job: on a terminal the number of completed tasks, elsewhere nothing."""

import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_barnabas.jobs.common.session import progress
from support.terminals import WAIT_S, Terminal


def test_a_bar_on_a_terminal_shows_completed_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    opener = os.open(gate, os.O_RDWR)

    def pass_gate(numbers: Iterable[int]) -> Iterable[int]:
        for number in numbers:
            if number == 1:
                with gate.open() as held:
                    held.readline()
            yield number

    def work() -> list[int]:
        with progress(spark, "working"):
            return spark.sparkContext.parallelize(range(2), 2).mapPartitions(pass_gate).collect()

    monkeypatch.setenv("TERM", "xterm")
    with Terminal() as terminal, monkeypatch.context() as patched, ThreadPoolExecutor(1) as executor:
        patched.setattr(sys, "stderr", terminal.stream)
        working = executor.submit(work)
        try:
            terminal.read_until(r"working .* 1/2 0:0")
        finally:
            os.write(opener, b"open\n")
        assert working.result(WAIT_S) == [0, 1]
    os.close(opener)


def test_without_a_terminal_nothing_is_shown(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "stderr").open("w+") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        with progress(spark, "working"):
            assert spark.sparkContext.parallelize(range(2), 2).count() == 2
        stderr.seek(0)
        assert stderr.read() == ""
