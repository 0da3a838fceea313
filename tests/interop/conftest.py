"""The cluster under test (INTEROP_TARGET: barnabas, kafka or both; INTEROP_BROKERS: 1 or 3) and its clients."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from interop.brokers import Broker
from interop.clients import Client, Clients
from interop.targets import RUNNING
from interop.topics import make_topic

#: A group waits for more members than the first, but not for Kafka's three seconds.
SETTINGS = {"group.initial.rebalance.delay.ms": "300"}


def targets() -> list[str]:
    requested = os.environ.get("INTEROP_TARGET", "barnabas")
    chosen = list(RUNNING) if requested == "both" else [requested]
    if not set(chosen) <= set(RUNNING):
        message = f"INTEROP_TARGET is {requested!r}; it can be barnabas, kafka or both"
        raise pytest.UsageError(message)
    return chosen


@pytest.fixture(scope="session", params=targets())
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def broker(target: str) -> Iterator[Broker]:
    """Run the cluster under test; return its first broker."""
    with RUNNING[target](SETTINGS) as running:
        yield running


@pytest.fixture(scope="session")
def every_client(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    running = Clients(broker.bootstrap, tmp_path_factory.mktemp("clients"))
    yield running
    running.close()


@pytest.fixture
def client(every_client: Clients, request: pytest.FixtureRequest) -> Client:
    return every_client[request.param]


@pytest.fixture(scope="session")
def helper(every_client: Clients) -> Client:
    """Return the client that does what the client under test cannot."""
    return every_client["confluent-kafka"]


@pytest.fixture(scope="session")
def names() -> Iterator[str]:
    return (f"interop-{number}" for number in range(1_000_000))


@pytest.fixture
def absent(names: Iterator[str]) -> str:
    """Return the name of a topic that does not exist."""
    return next(names)


@pytest.fixture
def topic(helper: Client, names: Iterator[str]) -> str:
    """Create a topic with one partition."""
    return make_topic(helper, next(names))
