"""The page of a topic: its partitions; more of them; its end."""

import pytest

from barnabas.testing import EmbeddedBroker
from support.consoles import visiting


def test_partitions_are_told_with_offsets_and_sizes(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t", partitions=2)
    for _ in range(5):
        kafka.produce("t", b"x" * 1000, partition=1)
    with visiting(kafka.bootstrap) as person:
        page = person.get("/topics/t").text
    assert '<td class="number">5</td>' in page
    assert "KiB" in page
    assert 'href="/topics/t/messages?partition=1"' in page


@pytest.mark.parametrize("path", ["/topics/", "/groups/", "/groups/lags/"])
def test_a_name_that_is_too_long_for_kafka_is_not_found(kafka: EmbeddedBroker, path: str) -> None:
    with visiting(kafka.bootstrap) as person:
        assert person.get(path + "x" * 32_768).status_code == 404


def test_partitions_are_added_by_who_knows_what_that_does(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t", partitions=2)
    with visiting(kafka.bootstrap) as person:
        page = person.submit("/topics/t/grow", total="4")
        assert page.status_code == 400
        assert "Tick this to go on" in page.text
        assert "only become more" in person.submit("/topics/t/grow", total="2", understood="1").text
        assert "not a whole number" in person.submit("/topics/t/grow", total="many", understood="1").text
        page = person.submit("/topics/t/grow", total="4", understood="1")
        assert page.url.path == "/topics/t"
        assert "has 4 partitions now, 2 more than before" in page.text
        assert "4 partitions now" not in person.get("/topics/t").text


def test_a_topic_is_deleted_by_who_types_its_name(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("t")
    with visiting(kafka.bootstrap) as person:
        assert ">t</a>" in person.get("/topics").text
        page = person.submit("/topics/t/delete", typed="T")
        assert page.status_code == 400
        assert "Type the topic&#39;s name" in page.text
        page = person.submit("/topics/t/delete", typed="t")
        assert page.url.path == "/topics"
        assert "Topic t is deleted" in page.text
        assert ">t</a>" not in page.text
        assert person.get("/topics/t").status_code == 404


@pytest.mark.parametrize(
    ("path", "fields"), [("grow", {"total": "9", "understood": "1"}), ("delete", {"typed": "t"})]
)
def test_a_read_only_console_offers_and_does_nothing(
    kafka: EmbeddedBroker, path: str, fields: dict[str, str]
) -> None:
    kafka.create_topic("t")
    with visiting(kafka.bootstrap, read_only=True) as person:
        page = person.get("/topics/t")
        assert f"/topics/t/{path}" not in page.text
        assert "Read-only" in page.text
        answer = person.submit(f"/topics/t/{path}", "/", **fields)
        assert answer.status_code == 403
        assert person.get("/topics/t").status_code == 200
        assert person.submit("/theme", "/", theme="dark").status_code == 200
