"""Exactly once under fire: a stream from topic to topic while its driver, its workers and the broker are killed.

SPARK_ROUNDS is how often: `make soak-spark` takes 20 rounds.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from support.process import BrokerProcess
from support.spark_stream import StreamProcess, wait_until_it_runs

ROUNDS = int(os.environ.get("SPARK_ROUNDS", "3"))
SEED = int(os.environ.get("SPARK_SEED", "1"))
INPUTS_PER_ROUND = 1_500
INPUTS_PER_SECOND = 150
PARTITIONS_COUNT = 3
WAIT_S = 120
BARNABAS = [sys.executable, "-c", "from barnabas.cli.main import main; main()"]
SETTINGS = ["offsets.topic.num.partitions=2", "transaction.state.log.num.partitions=2"]
VICTIMS = ("driver", "worker", "broker")


class Fire:
    """A broker and a stream, which are killed and started again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.dice = random.Random(SEED)
        self.kills: list[str] = []
        self.broker = self.start_broker(0)
        self.stream = self.start_stream()

    def start_broker(self, port: int) -> BrokerProcess:
        sets = [word for setting in SETTINGS for word in ("--set", setting)]
        return BrokerProcess(self.home / "data", *sets, port=port)

    def start_stream(self) -> StreamProcess:
        log = self.home / "stream.log"
        before = log.stat().st_size if log.exists() else 0
        if not before:
            admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
            topics = [NewTopic(name, PARTITIONS_COUNT, 1) for name in ("in", "out")]
            for made in admin.create_topics(topics).values():
                made.result()
        stream = StreamProcess(self.broker.bootstrap, "in", "out", self.home / "checkpoint", log)
        wait_until_it_runs(stream, before)
        return stream

    def produce(self) -> subprocess.Popen[bytes]:
        sizes = ["--count", str(INPUTS_PER_ROUND), "--rate", str(INPUTS_PER_SECOND)]
        with (self.home / "inputs.log").open("ab") as log:
            return subprocess.Popen(
                [*BARNABAS, "verify-eos", "produce", "in", *sizes, "--bootstrap", self.broker.bootstrap],
                stdout=log,
                stderr=log,
            )

    def kill(self, victim: str) -> None:
        """At a random moment; what ends by it is started again."""
        end_s = time.monotonic() + 20
        time.sleep(self.dice.uniform(0.5, 5))
        if victim == "broker":
            port = self.broker.port
            self.broker.kill()
            time.sleep(self.dice.uniform(0, 1))
            self.broker = self.start_broker(port)
            self.kills.append(victim)
            return
        strike = self.stream.kill_driver if victim == "driver" else self.stream.kill_worker
        while self.stream.runs and time.monotonic() < end_s:
            if strike():
                self.kills.append(victim)
                break

    def revive(self) -> None:
        """Start the stream where it has ended, or ends by what was killed."""
        time.sleep(2)
        if not self.stream.runs:
            self.stream = self.start_stream()

    def stop(self) -> None:
        self.stream.end()
        self.broker.kill()


@pytest.fixture
def fire(tmp_path: Path) -> Iterator[Fire]:
    burning = Fire(tmp_path)
    yield burning
    burning.stop()


def test_each_input_is_written_exactly_once_whoever_is_killed(fire: Fire) -> None:
    for number in range(ROUNDS):
        producing = fire.produce()
        fire.kill(VICTIMS[number % len(VICTIMS)])
        fire.revive()
        if producing.wait(WAIT_S) != 0:  # the broker was killed before it had even connected
            assert fire.produce().wait(WAIT_S) == 0, (fire.home / "inputs.log").read_text()[-2000:]
        fire.revive()
    assert len(fire.kills) == ROUNDS, fire.kills
    checking = [
        "verify-eos",
        "check",
        "in",
        "out",
        "--wait",
        str(WAIT_S),
        "--bootstrap",
        fire.broker.bootstrap,
    ]
    checked = subprocess.run([*BARNABAS, *checking], capture_output=True, text=True)
    told = fire.stream.log.read_text(errors="replace")[-4000:]
    assert checked.returncode == 0, checked.stdout + checked.stderr + told
