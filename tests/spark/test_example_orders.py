"""The shop example: after kills and restarts its totals equal those of plain Python."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.spark import ROOT, worker_environment

COUNT = 30_000
WAIT_S = 400


def started(home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "examples.orders", "--count", str(COUNT), "--home", str(home)]
    return subprocess.Popen(
        [*command, "--master", "local[2]"],
        cwd=ROOT,
        env={**os.environ, **worker_environment()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_killed_and_restarted_runs_have_the_right_totals(tmp_path: Path) -> None:
    first = started(tmp_path)
    end_s = time.monotonic() + WAIT_S
    while not (tmp_path / "tables" / "events" / "_delta_log").exists():
        assert first.poll() is None, first.communicate()[0][-4000:]
        assert time.monotonic() < end_s
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    second = started(tmp_path)
    output, _ = second.communicate(timeout=WAIT_S)
    assert second.returncode == 0, output[-4000:]
    assert f"{COUNT:,} events: all totals equal those of plain Python" in output
    report = (tmp_path / "report.html").read_text()
    assert report.count("<svg") >= 4
    assert "Dead letters by reason" in report


def test_another_size_needs_another_directory(tmp_path: Path) -> None:
    (tmp_path / "example.json").write_text('{"count": 5}')
    process = started(tmp_path)
    output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert "has 5 events: use --count 5, or another --home" in output
