"""A broker for tests of tables, and new topics."""

from collections.abc import Callable, Iterator

import pytest

from barnabas.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {
        "log.retention.ms": "-1",
        "log.cleaner.backoff.ms": "20",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
    }
    with EmbeddedBroker(settings, registry=True) as running:
        yield running


@pytest.fixture(scope="module")
def new_name() -> Callable[[], str]:
    names = (f"table-{number}" for number in range(1_000_000))
    return lambda: next(names)


@pytest.fixture
def topic(broker: EmbeddedBroker, new_name: Callable[[], str]) -> str:
    """Return a new topic with two partitions."""
    name = new_name()
    broker.create_topic(name, 2)
    return name
