"""The list of topics."""

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
