"""Creating topics, changing their configs, and producing to them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor, visiting

RULES = """
topics:
  - prefix: ''
    partitions: {max: 4}
    configs: {retention.ms: {max: 5000}}
"""


@pytest.fixture
def person(kafka: EmbeddedBroker) -> Iterator[Visitor]:
    with visiting(kafka.bootstrap) as visitor:
        yield visitor


def test_a_topic_is_created_with_configs(kafka: EmbeddedBroker, person: Visitor) -> None:
    fields = {"name": "orders", "partitions": "3", "retention.ms": "1000", "configs": "segment.ms = 5000\n"}
    page = person.submit("/new-topic", **fields, check="1")
    assert "would create this topic" in page.text
    assert person.get("/topics/orders").status_code == 404
    page = person.submit("/new-topic", **fields)
    assert page.url.path == "/topics/orders"
    assert "Topic orders is created" in page.text
    configs = person.get("/topics/orders/configs").text
    assert configs.count("set for this topic") == 2
    assert ">1000<" in configs
    assert ">orders</a>" in person.get("/topics").text


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, "name-error"),
        ({"name": "a b"}, "name-error"),
        ({"name": "t"}, "name-error"),
        ({"name": "n", "partitions": "0"}, "partitions-error"),
        ({"name": "n", "replicas": "3"}, "replicas-error"),
        ({"name": "n", "retention.ms": "-7"}, "retention.ms-error"),
        ({"name": "n", "configs": "what"}, "configs-error"),
        ({"name": "n", "configs": "no.such=1"}, "configs-error"),
    ],
)
def test_an_error_is_shown_beside_its_field(
    kafka: EmbeddedBroker, person: Visitor, fields: dict[str, str], expected: str
) -> None:
    kafka.create_topic("t")
    page = person.submit("/new-topic", **fields)
    assert page.status_code == 400
    assert f'id="{expected}"' in page.text
    assert 'aria-invalid="true"' in page.text
    assert person.get("/topics/n").status_code == 404


def test_a_policy_violation_has_the_policys_message(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    with EmbeddedBroker({"barnabas.policy.file": str(rules)}) as kafka, visiting(kafka.bootstrap) as person:
        page = person.submit("/new-topic", name="wide", partitions="5", **{"retention.ms": "1"})
        assert page.status_code == 400
        assert "POLICY_VIOLATION" in page.text
        assert 'role="alert"' in page.text
        kafka.create_topic("t", configs={"retention.ms": "100"})
        page = person.submit(
            "/topics/t/configs/alter", "/", key="retention.ms", **{"value:retention.ms": "9000"}
        )
        assert page.status_code == 400
        assert "POLICY_VIOLATION" in page.text


def test_a_config_change_is_previewed(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    path = "/topics/t/configs/alter"
    form = person.get(f"{path}?key=retention.ms&key=cleanup.policy").text
    assert "604800000" in form
    fields = {
        "key": ["retention.ms", "cleanup.policy"],
        "value:retention.ms": "1000",
        "value:cleanup.policy": "delete",
    }
    page = person.submit(path, "/", **fields)
    assert "<del>604800000</del>" in page.text
    assert "<ins>1000</ins>" in page.text
    assert "cleanup.policy</th>" not in page.text
    assert "set for this topic" not in person.get("/topics/t/configs").text
    page = person.submit(path, "/", **fields, confirmed="1", **{"was:retention.ms": "604800000"})
    assert page.url.path == "/topics/t/configs"
    assert "Changed: retention.ms" in page.text
    assert "set for this topic" in page.text
    page = person.submit(path, "/", key="retention.ms", **{"reset:retention.ms": "1"})
    assert "<ins>the broker&#39;s default</ins>" in page.text
    fields = {"key": "retention.ms", "reset:retention.ms": "1", "was:retention.ms": "1000", "confirmed": "1"}
    assert "set for this topic" not in person.submit(path, "/", **fields).text


def test_a_stale_preview_is_shown_again(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t", configs={"retention.ms": "5"})
    fields = {"key": "retention.ms", "value:retention.ms": "7", "was:retention.ms": "6", "confirmed": "1"}
    page = person.submit("/topics/t/configs/alter", "/", **fields)
    assert "in the meantime" in page.text
    assert "<del>5</del>" in page.text


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"key": "retention.ms", "value:retention.ms": "604800000"}, "Nothing would change"),
        ({"key": "retention.ms", "value:retention.ms": "soon"}, 'id="value:retention.ms-error"'),
        ({"key": "no.such", "value:no.such": "1"}, "There is no config"),
    ],
)
def test_invalid_changes_are_explained(
    kafka: EmbeddedBroker, person: Visitor, fields: dict[str, str], expected: str
) -> None:
    kafka.create_topic("t")
    page = person.submit("/topics/t/configs/alter", "/", **fields)
    assert page.status_code == 400
    assert expected in page.text


def test_a_record_is_produced(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t", partitions=2)
    fields = {
        "key": "00ff",
        "key_form": "hex",
        "value": '{"a": 1}',
        "value_form": "json",
        "headers": "x: 1\ny: z: 2",
    }
    page = person.submit("/topics/t/produce", partition="1", **fields)
    assert "Written to partition 1 at offset 0" in page.text
    person.submit("/topics/t/produce", key="k", value="aGk=", value_form="base64")
    person.submit("/topics/t/produce", key="gone", no_value="1")
    person.submit("/topics/t/produce", no_key="1", value="line\r\nline")
    records = sorted(kafka.records("t"), key=lambda record: record.timestamp_ms)
    assert [(record.key, record.value) for record in records] == [
        (b"\x00\xff", b'{"a": 1}'),
        (b"k", b"hi"),
        (b"gone", None),
        (None, b"line\nline"),
    ]
    assert list(records[0].headers) == [("x", b"1"), ("y", b"z: 2")]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"key": "zz", "key_form": "hex"}, "key-error"),
        ({"value": "{", "value_form": "json"}, "value-error"),
        ({"value": "*", "value_form": "base64"}, "value-error"),
        ({"headers": "nothing"}, "headers-error"),
        ({"partition": "9"}, "partition-error"),
    ],
)
def test_an_invalid_record_is_reported_beside_its_field(
    kafka: EmbeddedBroker, person: Visitor, fields: dict[str, str], expected: str
) -> None:
    kafka.create_topic("t")
    page = person.submit("/topics/t/produce", **fields)
    assert page.status_code == 400
    assert f'id="{expected}"' in page.text
    assert not kafka.records("t")


@pytest.mark.kafka_settings({"message.max.bytes": "1000"})
def test_a_produce_error_of_the_broker_is_reported(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    page = person.submit("/topics/t/produce", value="x" * 5000)
    assert page.status_code == 400
    assert "MESSAGE_TOO_LARGE" in page.text


LONG = "x" * 40_000


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/new-topic", {"name": LONG}),
        ("/new-topic", {"name": "n", "configs": f"a=1\nfollower.replication.throttled.replicas={LONG}"}),
        ("/acls", {"resource_name": LONG, "principal": "bob", "operation": "read"}),
        ("/quotas", {"user": LONG, "key": "producer_byte_rate", "value": "1"}),
        ("/brokers/1", {"key": LONG, "way": "set", "value": "1"}),
        ("/brokers/1", {"key": "log.retention.ms", "way": "set", "value": "é" * 16_384}),
    ],
)
def test_text_too_long_for_a_kafka_string_is_explained(
    person: Visitor, path: str, fields: dict[str, str]
) -> None:
    page = person.submit(path, **fields)
    assert page.status_code == 400
    assert "Kafka allows at most 32767." in page.text
    assert len(page.text) < 100_000


def test_records_and_states_may_be_longer_than_kafka_strings(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("orders")
    page = person.submit("/topics/orders/produce", value=LONG, key=LONG, headers=f"h: {LONG}")
    assert "Written to partition 0" in page.text
    assert (
        person.submit("/plan", text=f"# {LONG}\ntopics: {{orders: {{partitions: 2}}}}\n").status_code == 200
    )
