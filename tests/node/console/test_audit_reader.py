"""Reading the audit topic backwards."""

import asyncio

import pytest

from barnabas.client.core.cluster import ClusterClient
from barnabas.console import audit_follower, audit_reader
from barnabas.console.audit_follower import FOLLOWED_MAX, AuditFollower
from barnabas.console.audit_reader import NO_AUDIT, AuditPage, AuditQuery, Look, look_back, read_back
from barnabas.testing import EmbeddedBroker
from support.audit import AUDITED, events, published

pytestmark = pytest.mark.kafka_settings(AUDITED)


@pytest.fixture
def audited(kafka: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> EmbeddedBroker:
    """Return a broker with the events of some topics, which are read in small chunks."""
    monkeypatch.setattr(audit_reader, "_CHUNK", 2)
    for number in range(7):
        kafka.create_topic(f"t{number}", configs={"retention.ms": "1000"})
    published(kafka, "topic/t6", "retention.ms", "1000")
    return kafka


def found(broker: EmbeddedBroker, query: AuditQuery, **options: int) -> AuditPage:
    async def ask() -> AuditPage:
        async with ClusterClient(broker.bootstrap) as cluster:
            return await read_back(cluster, query, **options)

    return asyncio.run(ask())


def test_consecutive_pages_contain_all_events(audited: EmbeddedBroker) -> None:
    everything = events(audited)[::-1]
    walked, page = [], found(audited, AuditQuery(), count=4)
    while True:
        assert len(page.events) <= 4
        walked += page.events
        if page.older is None:
            break
        page = found(audited, AuditQuery(), count=4, before=page.older)
    assert walked == everything
    assert len(everything) > 7


def test_events_are_filtered_by_resource_principal_and_time(audited: EmbeddedBroker) -> None:
    one = found(audited, AuditQuery(resource="topic/t3")).events
    assert {event.resource for event in one} == {"topic/t3"}
    assert len(found(audited, AuditQuery(resource="topic/t*")).events) == 7 * len(one)
    assert found(audited, AuditQuery(principal="User:nobody")).events == []
    assert found(audited, AuditQuery(since_ms=one[0].time + 3_600_000)).events == []
    assert found(audited, AuditQuery(until_ms=one[0].time - 3_600_000)).events == []


def test_one_search_is_bounded_and_returns_where_to_continue(audited: EmbeddedBroker) -> None:
    page = found(audited, AuditQuery(principal="User:nobody"), look_max=5)
    assert page.events == []
    assert page.older is not None
    further = found(audited, AuditQuery(resource="topic/t0"), before=page.older)
    assert {event.resource for event in further.events} == {"topic/t0"}


def test_the_next_search_reads_new_events(audited: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[int, int]] = []

    async def noted(cluster: ClusterClient, query: AuditQuery, first: int, last: int) -> Look:
        looked.append((first, last))
        return await look_back(cluster, query, first, last)

    monkeypatch.setattr(audit_follower, "look_back", noted)

    async def ask() -> None:
        async with ClusterClient(audited.bootstrap) as cluster:
            follower, query = AuditFollower(cluster), AuditQuery(resource="topic/later")
            assert (await follower.latest("later", query)).events == []
            [(first, last)] = looked
            assert (first, last) == (0, len(events(audited)))
            await follower.latest("later", query)
            assert len(looked) == 1, "nothing has come"
            await asyncio.to_thread(audited.create_topic, "later", configs={"retention.ms": "1000"})
            await asyncio.to_thread(published, audited, "topic/later", "retention.ms", "1000")
            found = await follower.latest("later", query)
            assert {event.resource for event in found.events} == {"topic/later"}
            assert looked[1][0] == last
            assert await follower.latest("later", query) == found
            assert found == await read_back(cluster, query)
            for number in range(FOLLOWED_MAX):
                await follower.latest(number, AuditQuery(principal="User:nobody"))
            await follower.latest("later", query)
            assert looked[-1][0] == 0, "of many filters the one used longest ago is forgotten"

    asyncio.run(ask())


def test_a_query_with_an_end_time_is_searched_again(audited: EmbeddedBroker) -> None:
    async def ask() -> None:
        async with ClusterClient(audited.bootstrap) as cluster:
            follower, query = AuditFollower(cluster), AuditQuery(resource="topic/t*", until_ms=1)
            assert (await follower.latest("until", query)).events == []
            later = AuditQuery(resource="topic/t*", until_ms=2**62)
            assert (await follower.latest("until", later)).events

    asyncio.run(ask())


def test_a_follower_without_an_audit_reports_it() -> None:
    async def ask(bootstrap: str) -> AuditPage:
        async with ClusterClient(bootstrap) as cluster:
            return await AuditFollower(cluster).latest("", AuditQuery())

    with EmbeddedBroker({"barnabas.audit.enable": "false"}) as kafka:
        assert asyncio.run(ask(kafka.bootstrap)) == NO_AUDIT
