"""Messages that the console decodes with a schema registry."""

from collections.abc import Iterator

import pytest

from barnabas.registry.codecs.framing import framed
from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor, running_console, visitor
from support.registries import RestClient, avro_record


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Run a broker with a registry and a topic with a value of Avro, one of an unknown schema, and a text."""
    with EmbeddedBroker(registry=True) as running:
        schema_id = RestClient(running.registry_url).register("orders-value", avro_record("Order", "id"))[
            "id"
        ]
        running.create_topic("orders", partitions=1)
        for value in (framed(schema_id, b"\x0e"), framed(999, b"\x0e"), b"plain"):
            running.produce("orders", value)
        yield running


@pytest.fixture(scope="module")
def person(broker: EmbeddedBroker) -> Iterator[Visitor]:
    with running_console(broker.bootstrap, registry=broker.registry_url) as server, visitor(server) as guest:
        yield guest


def test_values_are_shown_as_json_with_their_schema(person: Visitor) -> None:
    page = person.get("/topics/orders/messages").text
    assert "&#34;id&#34;: 7" in page
    assert "Avro, schema 1, 6" in page
    assert "plain" in page
    assert "00 00 00 03 e7 0e" in page


def test_decoded_values_are_searched(person: Visitor) -> None:
    page = person.get("/topics/orders/messages?value=%22id%22").text
    assert "1 record found" in page


def test_bytes_are_shown_and_downloaded_if_asked(person: Visitor) -> None:
    assert "00 00 00 00 01 0e" in person.get("/topics/orders/messages?as=hex").text
    assert person.get("/topics/orders/messages/0/0/value").content == b"\0\0\0\0\x01\x0e"
