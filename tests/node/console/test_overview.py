"""The overview page of a cluster."""

from barnabas.base.clock import ManualClock
from barnabas.testing import EmbeddedBroker
from support.consoles import visiting


def test_the_throughput_is_updated_while_the_page_is_open(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("orders", partitions=2)
    kafka.create_topic("quiet")
    clock = ManualClock()
    with visiting(kafka.bootstrap, clock) as person:
        assert "measuring" in person.get("/").text
        clock.advance(5_000)
        assert "No records are being written" in person.get("/live").text
        for index in range(100):
            kafka.produce("orders", b"x", partition=index % 2)
        assert "No records are being written" in person.get("/live").text
        clock.advance(10_000)
        page = person.get("/live").text
        assert "<strong>10</strong>" in page
        assert 'href="/topics/orders"' in page
        assert "quiet" not in page
        clock.advance(120_000)
        assert "measuring" in person.get("/live").text


def test_the_overview_counts_resources(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("a", partitions=2)
    kafka.create_topic("b", partitions=3)
    with visiting(kafka.bootstrap) as person:
        page = person.get("/").text
    assert "<dt>Topics</dt><dd>2" in page
    assert 'href="/brokers/1"' in page
    assert "no leader" not in page


def test_automatic_refreshes_do_not_extend_a_session(kafka: EmbeddedBroker) -> None:
    clock = ManualClock()
    with visiting(kafka.bootstrap, clock) as person:
        person.get("/")
        [before] = person.cookies.jar
        for _ in range(4):
            clock.advance(10 * 60_000)
            person.get("/live", headers={"HX-Request": "true"})
        [after] = person.cookies.jar
        assert before.value != after.value
