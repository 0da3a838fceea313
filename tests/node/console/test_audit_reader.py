"""The audit's topic, read backwards."""

import asyncio

import pytest

from barnabas.client.cluster import Cluster
from barnabas.console import audit_reader
from barnabas.console.audit_reader import AuditWish, Found, read_back
from barnabas.testing import EmbeddedBroker
from support.audit import AUDITED, events, published

pytestmark = pytest.mark.kafka_settings(AUDITED)


@pytest.fixture
def audited(kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> EmbeddedBroker:
    """A broker with the events of some topics, which are read in small parts."""
    monkeypatch.setattr(audit_reader, "_CHUNK", 2)
    for number in range(7):
        kafka.create_topic(f"t{number}", configs={"retention.ms": "1000"})
    published(kafka, "topic/t6", "retention.ms", "1000")
    return kafka


def found(broker: EmbeddedBroker, wish: AuditWish, **options: int) -> Found:
    async def ask() -> Found:
        async with Cluster(broker.bootstrap) as cluster:
            return await read_back(cluster, wish, **options)

    return asyncio.run(ask())


def test_pages_behind_each_other_are_all_that_there_is(audited: EmbeddedBroker) -> None:
    everything = events(audited)[::-1]
    walked, page = [], found(audited, AuditWish(), count=4)
    while True:
        assert len(page.events) <= 4
        walked += page.events
        if page.older is None:
            break
        page = found(audited, AuditWish(), count=4, before=page.older)
    assert walked == everything
    assert len(everything) > 7


def test_a_resource_a_principal_and_times_are_looked_for(audited: EmbeddedBroker) -> None:
    one = found(audited, AuditWish(resource="topic/t3")).events
    assert {event.resource for event in one} == {"topic/t3"}
    assert len(found(audited, AuditWish(resource="topic/t*")).events) == 7 * len(one)
    assert found(audited, AuditWish(principal="User:nobody")).events == []
    assert found(audited, AuditWish(since_ms=one[0].time + 3_600_000)).events == []
    assert found(audited, AuditWish(until_ms=one[0].time - 3_600_000)).events == []


def test_one_look_has_an_end_and_says_where_to_go_on(audited: EmbeddedBroker) -> None:
    page = found(audited, AuditWish(principal="User:nobody"), look_max=5)
    assert page.events == []
    assert page.older is not None
    further = found(audited, AuditWish(resource="topic/t0"), before=page.older)
    assert {event.resource for event in further.events} == {"topic/t0"}
