"""Tables with the schemas of a registry, which change."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.registry.client import RegistryUnavailable
from barnabas.tables.settings import Decoding, TableFormat
from barnabas.testing import EmbeddedBroker
from support.tables import (
    FORMAT_IDS,
    FORMATS,
    advance,
    arrow_table,
    settings_of,
    table_rows,
    topic_table,
)

each_format = pytest.mark.parametrize("kind", FORMATS, ids=FORMAT_IDS)
RECORD_COLUMNS = {
    "kafka_key",
    "kafka_partition",
    "kafka_offset",
    "kafka_timestamp",
    "kafka_headers",
    "kafka_schema_id",
    "kafka_error",
    "kafka_raw_value",
}


class Writer:
    """Writes values with Confluent's serializers."""

    def __init__(self, broker: EmbeddedBroker, topic: str) -> None:
        self._broker = broker
        self._topic = topic
        self._client = SchemaRegistryClient({"url": broker.registry_url})

    def avro(self, fields: list[dict[str, Any]], *rows: dict[str, Any]) -> None:
        schema = {"type": "record", "name": "shop.Order", "fields": fields}
        self._client.set_compatibility(f"{self._topic}-value", "NONE")
        self._write(AvroSerializer(self._client, json.dumps(schema)), rows)

    def json(self, properties: dict[str, Any], *rows: dict[str, Any]) -> None:
        schema = {"title": "Order", "type": "object", "properties": properties}
        self._client.set_compatibility(f"{self._topic}-value", "NONE")
        self._write(JSONSerializer(json.dumps(schema), self._client), rows)

    def raw(self, value: bytes | None) -> None:
        self._broker.produce(self._topic, value, partition=0)

    def _write(self, serialize: Callable[..., Any], rows: tuple[dict[str, Any], ...]) -> None:
        for row in rows:
            self.raw(serialize(row, SerializationContext(self._topic, MessageField.VALUE)))


@pytest.fixture
def writer(broker: EmbeddedBroker, topic: str) -> Writer:
    return Writer(broker, topic)


def field(name: str, kind: Any, **further: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **further}


def own_columns(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in RECORD_COLUMNS}


@each_format
def test_columns_follow_the_schemas(
    broker: EmbeddedBroker, topic: str, writer: Writer, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "t", value_decoding=Decoding.REGISTRY)
    table = topic_table(settings, registry_url=broker.registry_url)
    address = {"type": "record", "name": "shop.Address", "fields": [field("city", "string")]}
    writer.avro([field("id", "long"), field("to", address)], {"id": 1, "to": {"city": "Bern"}})
    advance(table, broker.bootstrap)
    address = {**address, "fields": [field("city", "string"), field("zip", ["null", "int"], default=None)]}
    tags = {"type": "array", "items": "string"}
    writer.avro(
        [field("id", "long"), field("to", address), field("tags", tags)],
        {"id": 2, "to": {"city": "Basel", "zip": 4000}, "tags": ["a", "b"]},
    )
    writer.avro([field("id", "long")], {"id": 3})
    advance(table, broker.bootstrap)
    rows = table_rows(settings)
    assert [own_columns(row) for row in rows[:2]] == [
        {"id": 1, "to": {"city": "Bern", "zip": None}, "tags": rows[0]["tags"]},
        {"id": 2, "to": {"city": "Basel", "zip": 4000}, "tags": ["a", "b"]},
    ]
    assert rows[2]["id"] == 3
    assert arrow_table(settings)["tags"].null_count + sum(row["tags"] == [] for row in rows) == 2
    assert len({row["kafka_schema_id"] for row in rows}) == 3
    assert {row["kafka_error"] for row in rows} == {None}


@each_format
def test_what_cannot_be_decoded_keeps_its_bytes_and_says_why(
    broker: EmbeddedBroker, topic: str, writer: Writer, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "t", value_decoding=Decoding.REGISTRY)
    writer.avro([field("id", "long")], {"id": 1})
    writer.raw(b"no frame")
    writer.raw(None)
    writer.raw(b"\0\x00\x0f\x42\x3f\x02")
    writer.avro([field("id", "string")], {"id": "x"})
    writer.avro([field("kafka_offset", "long")], {"kafka_offset": 9})
    writer.avro([field("_partition", "int")], {"_partition": 9})
    writer.avro([field("id", "long")], {"id": 2})
    table = topic_table(settings, registry_url=broker.registry_url)
    advance(table, broker.bootstrap)
    rows = table_rows(settings)
    assert [row["id"] for row in rows] == [1, None, None, None, None, None, None, 2]
    errors = [row["kafka_error"] for row in rows]
    assert [error is None for error in errors] == [True, False, True, *[False] * 4, True]
    assert "does not begin with a byte 0 and a schema id" in errors[1]
    assert "999999" in errors[3]
    assert errors[4] == "id is string; the table's column is int64"
    assert errors[5] == "value: its field kafka_offset has a name that is reserved"
    assert [row["kafka_raw_value"] is None for row in rows] == [True, False, True, *[False] * 4, True]
    assert rows[1]["kafka_raw_value"] == b"no frame"
    assert rows[2]["kafka_schema_id"] is None
    assert table.counts.rejected_rows_count == 5


@each_format
def test_a_field_whose_name_is_the_path_of_another_field_keeps_its_bytes(
    broker: EmbeddedBroker, topic: str, writer: Writer, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(topic, kind, tmp_path / "t", value_decoding=Decoding.REGISTRY)
    nested = {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}
    dotted = {"a.b": {"type": "string"}}
    writer.json({**nested, **dotted}, {"a": {"b": "x"}, "a.b": "y"})
    writer.json(nested, {"a": {"b": "x"}})
    writer.json(dotted, {"a.b": "y"})
    advance(topic_table(settings, registry_url=broker.registry_url), broker.bootstrap)
    rows = table_rows(settings)
    assert [row["a"] for row in rows] == [None, {"b": "x"}, None]
    reason = "a.b: another column has the path a.b"
    assert [row["kafka_error"] for row in rows] == [reason, None, reason]
    assert [row["kafka_raw_value"] is None for row in rows] == [False, True, False]


@each_format
def test_values_of_json_schema_and_keys_are_decoded(
    broker: EmbeddedBroker, topic: str, writer: Writer, tmp_path: Path, kind: TableFormat
) -> None:
    settings = settings_of(
        topic, kind, tmp_path / "t", key_decoding=Decoding.REGISTRY, value_decoding=Decoding.REGISTRY
    )
    writer.json({"id": {"type": "integer"}, "price": {"type": "number"}}, {"id": 7, "price": 1.5})
    client = SchemaRegistryClient({"url": broker.registry_url})
    schema = json.dumps({"type": "record", "name": "Key", "fields": [field("shop", "int")]})
    key = AvroSerializer(client, schema)({"shop": 5}, SerializationContext(topic, MessageField.KEY))
    broker.produce(topic, None, key=key, partition=1)
    broker.produce(topic, None, key=b"text", partition=1)
    advance(topic_table(settings, registry_url=broker.registry_url), broker.bootstrap)
    first, second, third = table_rows(settings)
    assert (first["id"], first["price"], first["kafka_key"]) == (7, 1.5, None)
    assert (second["kafka_key"], second["kafka_error"]) == ({"shop": 5}, None)
    assert third["kafka_raw_key"] == b"text"
    assert third["kafka_error"].startswith("key: ")


def test_records_wait_for_the_registry(
    broker: EmbeddedBroker, topic: str, writer: Writer, tmp_path: Path
) -> None:
    settings = settings_of(topic, TableFormat.DELTA, tmp_path / "t", value_decoding=Decoding.REGISTRY)
    writer.avro([field("id", "long")], {"id": 1})
    with pytest.raises(RegistryUnavailable):
        advance(topic_table(settings, registry_url="http://127.0.0.1:9"), broker.bootstrap)
    assert not list(tmp_path.rglob("*.parquet"))
    advance(topic_table(settings, registry_url=broker.registry_url), broker.bootstrap)
    assert [row["id"] for row in table_rows(settings)] == [1]
