"""The list of topics."""

import re

from barnabas.testing import EmbeddedBroker
from support.consoles import visiting


def test_topics_are_searched_sorted_and_paged_on_the_server(kafka: EmbeddedBroker) -> None:
    for index in range(30):
        kafka.create_topic(f"orders-{index:02}", partitions=1 + index % 3)
    kafka.create_topic("payments")
    with visiting(kafka.bootstrap) as person:
        page = person.get("/topics", params={"q": "ORDERS", "sort": "-name", "size": "25", "page": "2"}).text
        assert "26–30 of 30 topics" in page
        assert "found among 31" in page
        assert page.index("orders-04") < page.index("orders-00")
        assert "payments" not in page
        piece = person.get("/topics?q=pay", headers={"HX-Request": "true"}).text
        assert "payments" in piece
        assert "<html" not in piece
        assert "No topic has “none”" in person.get("/topics?q=none").text


def test_topics_of_a_page_have_their_sizes(kafka: EmbeddedBroker) -> None:
    kafka.create_topic("empty")
    kafka.create_topic("large", partitions=2)
    for partition in (0, 1):
        kafka.produce("large", b"x" * 5_000, partition=partition)
    with visiting(kafka.bootstrap) as person:
        page = person.get("/topics").text
        assert ">Size<" in page
        assert re.findall(r'<td class="number">([0-9.]+ K?i?B)</td>', page) == ["0 B", "9.9 KiB"]
        piece = person.get("/topics?q=large", headers={"HX-Request": "true"}).text
        assert "9.9 KiB" in piece
        kafka.fail_next("DescribeLogDirs", "UNKNOWN_SERVER_ERROR")
        assert "9.9 KiB" not in person.get("/topics").text
