"""Exactly-once delivery: applications transform in transactions while the broker is killed at random moments.

EOS_SECONDS is how long: `make soak-eos` takes three minutes each.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from interop.brokers import Broker, consecutive_ports
from interop.exactly_once import APPLICATIONS, transforming
from interop.targets import BROKERS_COUNT, START

SECONDS = int(os.environ.get("EOS_SECONDS", "12"))
INPUTS_PER_SECOND = 200
PARTITIONS_COUNT = 3
#: Each restart of a broker restarts the sessions of its groups' members: they must be shorter than most of the pauses
#: between two kills, or a dead member never expires.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "auto.create.topics.enable": "false",
}
PAUSE_S = (0.5, 8.0)

#: The application that `make interop` also runs against three brokers.
IN_CLUSTER = "franz-go"


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
    count = SECONDS * INPUTS_PER_SECOND
    with transforming(
        bootstrap, application, ("in", "out"), count, INPUTS_PER_SECOND, tmp_path
    ) as application_run:
        kill_test.run(SECONDS)
        assert application_run.problems() == ""
    assert kill_test.kills_count > 0
