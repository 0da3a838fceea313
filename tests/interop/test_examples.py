"""The examples that need a cluster work as described."""

import subprocess
import sys

from interop.brokers import Broker

from support.documents import ROOT

TIMEOUT_S = 240


def test_the_example_of_many_events_finds_no_difference(broker: Broker) -> None:
    example = ROOT / "examples" / "million_events.py"
    command = [
        sys.executable,
        str(example),
        *f"--bootstrap {broker.bootstrap} --partitions 3 --count 200000".split(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200,000 events" in done.stdout
    assert "without a difference" in done.stdout
