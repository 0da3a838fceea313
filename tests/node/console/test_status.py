"""The status page of the console, while a broker is dead."""

from collections.abc import Iterator

import pytest

from barnabas.base.store_member import StoreMember
from barnabas.stores.sqlite import SqliteStore
from barnabas.testing import EmbeddedBroker, EmbeddedCluster
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


def test_the_page_shows_the_members_of_the_metadata_store(
    kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def members(_: SqliteStore) -> list[StoreMember]:
        serves = StoreMember("http://h1:2379", "etcd-1", "leader", "3.5.1", 20_480)
        return [serves, StoreMember("http://h2:2379", "etcd-2", reason="Connection refused")]

    monkeypatch.setattr(SqliteStore, "members", members)
    with visiting(kafka.bootstrap) as person:
        page = person.get("/status").text
    assert "The metadata store at http://h2:2379 is unavailable: Connection refused." in page
    assert [text in page for text in ("etcd-1", ">leader<", "3.5.1", ">unavailable<")] == [True] * 4
