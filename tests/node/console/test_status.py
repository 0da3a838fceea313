"""The status page of the console, while a broker is dead."""

from collections.abc import Iterator

import pytest

from barnabas.testing import EmbeddedCluster
from support.consoles import visiting
from support.waiting import until


@pytest.fixture
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3) as running:
        running.create_topic("orders", 2)
        yield running


def test_the_page_shows_a_dead_broker_and_its_partitions(brokers: EmbeddedCluster) -> None:
    with visiting(brokers.brokers[1].bootstrap) as person:
        healthy = person.get("/status").text
        assert "The cluster is healthy." in healthy
        assert healthy.count(">same<") == 3
        assert "Unhealthy partitions" not in healthy
        brokers.kill(3)
        until(lambda: "Broker 3 is fenced." in person.get("/status").text)
        until(lambda: "2 partitions are under-replicated." in person.get("/status").text)
        page = person.get("/status").text
        assert "Unhealthy partitions" in page
        assert (page.count(">same<"), page.count(">unknown<")) == (2, 1)
        brokers.restart(3)
        until(lambda: "The cluster is healthy." in person.get("/status").text)
