"""The examples that need a cluster work as described."""

import subprocess
import sys

from interop.brokers import Broker

from support.documents import ROOT

MILLION_EVENTS_S = 240


def test_a_million_events_round_trip(broker: Broker) -> None:
    example = ROOT / "examples" / "million_events.py"
    command = [sys.executable, str(example), "--bootstrap", broker.bootstrap, "--partitions", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MILLION_EVENTS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1,000,000 events" in done.stdout
    assert "without a difference" in done.stdout
