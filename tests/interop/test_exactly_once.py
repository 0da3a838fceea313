"""Exactly-once delivery: applications transform in transactions while the broker is killed at random moments.

EOS_SECONDS is how long: `make soak-eos` takes three minutes each.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from interop.brokers import Broker, consecutive_ports
from interop.clients import BINARIES, HERE
from interop.targets import BROKERS_COUNT, START

from interop import reference

SECONDS = int(os.environ.get("EOS_SECONDS", "20"))
INPUTS_PER_SECOND = 200
PARTITIONS_COUNT = 3
#: After the last kill: the killed member's session times out, and its transaction is taken over.
WAIT_S = 60
COMMAND = Path(sys.executable).with_name("barnabas")
#: Each restart of a broker restarts the sessions of its groups' members: they must be shorter than most of the pauses
#: between two kills, or a dead member never expires.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
}
PAUSE_S = (0.5, 8.0)

#: How each application is started; HOST:PORT INPUT OUTPUT GROUP follow.
APPLICATIONS: dict[str, Sequence[str | Path]] = {
    "java": reference.java(
        *reference.TOOL_JVM_OPTIONS,
        "barnabas.interop.Transform",
        classes=HERE / "java" / "target" / "classes",
    ),
    "confluent-kafka": (sys.executable, "-m", "interop.python.confluent_transform"),
    "franz-go": (BINARIES / "transform",),
}
#: The one that `make interop` also runs against three brokers.
IN_CLUSTER = "franz-go"


@contextmanager
def running(command: Sequence[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command], cwd=HERE.parent, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class KillTest:
    """A broker that is killed and restarted on the same port and data."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home, self.rng = home, random.Random(seed)
        self.port = consecutive_ports(BROKERS_COUNT)
        self.kills_count = 0
        self.broker = self.start()

    def start(self) -> Broker:
        return START["barnabas"](self.home, PROPERTIES, self.port)

    def run(self, seconds: float) -> None:
        """Kill it at random moments until the time is over."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            time.sleep(self.rng.uniform(*PAUSE_S))
            self.broker.kill()
            self.kills_count += 1
            time.sleep(self.rng.uniform(0, 0.5))
            self.broker = self.start()


@pytest.fixture
def kill_test(tmp_path: Path) -> Iterator[KillTest]:
    killing = KillTest(tmp_path, seed=SECONDS)
    yield killing
    killing.broker.stop()


@pytest.mark.parametrize(
    "application",
    [pytest.param(name, marks=[pytest.mark.cluster] if name == IN_CLUSTER else []) for name in APPLICATIONS],
)
def test_each_input_has_exactly_one_output_whenever_the_broker_is_killed(
    kill_test: KillTest, application: str, tmp_path: Path
) -> None:
    bootstrap = kill_test.broker.bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, PARTITIONS_COUNT) for name in ("in", "out")]).values():
        made.result()
    eos = [COMMAND, "verify-eos"]
    count = SECONDS * INPUTS_PER_SECOND
    sending = [*eos, "produce", "in", "--count", str(count), "--rate", str(INPUTS_PER_SECOND)]
    app = [*APPLICATIONS[application], bootstrap, "in", "out", "eos"]
    with (
        running([*sending, "--bootstrap", bootstrap], tmp_path / "inputs.log") as producing,
        running(app, tmp_path / "application.log"),
    ):
        kill_test.run(SECONDS)
        assert producing.wait(WAIT_S) == 0, (tmp_path / "inputs.log").read_text()[-2000:]
        checking = [*eos, "check", "in", "out", "--wait", str(WAIT_S), "--bootstrap", bootstrap]
        checked = subprocess.run([str(part) for part in checking], capture_output=True, text=True)
    assert kill_test.kills_count > 0
    output = (tmp_path / "application.log").read_text(errors="replace")[-3000:]
    assert checked.returncode == 0, checked.stdout + checked.stderr + output
