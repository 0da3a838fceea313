"""Columns of values of a registry, written by Confluent's serializers."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClassesForFiles

from barnabas.codecs.errors import SchemaError
from barnabas.codecs.registered import DecodedValues, RegisteredValues, WriterSchema
from barnabas.registry.client import RegistryClient, RegistryUnavailable
from barnabas.registry.codecs.framing import framed, unframed
from barnabas.registry.codecs.values import codec_of
from barnabas.registry.schemas import SchemaType
from barnabas.registry.serving import RegistryServer
from barnabas.testing import EmbeddedBroker
from support.registries import RestClient, avro_record, running_registry

NOTE = {"name": "note", "type": ["null", "string"], "default": None}
PRICE = {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}
AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
ORDER = {"type": "record", "name": "shop.Order", "fields": [PRICE, NOTE]}
NEWER = {**ORDER, "fields": [*ORDER["fields"], {**AT, "default": 0}]}
JSON_ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "day": {"type": "string", "format": "date"}},
    "required": ["id"],
}


class CountingClient(RegistryClient):
    """Counts the requests for schemas."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.requested_ids: list[int] = []

    def by_id(self, schema_id: int) -> Any:
        self.requested_ids.append(schema_id)
        return super().by_id(schema_id)


@pytest.fixture
def confluent(registry: RegistryServer) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


@pytest.fixture
def client(registry: RegistryServer) -> CountingClient:
    return CountingClient(registry.url)


@pytest.fixture
def values(client: CountingClient) -> RegisteredValues:
    return RegisteredValues(client)


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def id_of(value: bytes) -> int:
    found = unframed(value)
    assert found is not None
    return found.schema_id


def rows_of(found: DecodedValues) -> dict[int, Any]:
    """Return all rows by the position of their values."""
    return {
        position: row
        for group in found.rows
        for position, row in zip(group.positions.to_pylist(), group.rows.to_pylist(), strict=True)
    }


def unusable_reason(schema_id: int, problem: str) -> str:
    return (
        f"the value cannot be decoded: its schema id is {schema_id}, whose schema cannot be used: {problem}"
    )


def test_each_value_is_read_by_the_schema_with_which_it_was_written(
    confluent: SchemaRegistryClient, client: CountingClient, values: RegisteredValues
) -> None:
    older = AvroSerializer(confluent, json.dumps(ORDER))
    newer = AvroSerializer(confluent, json.dumps(NEWER))
    at = datetime(2026, 5, 17, tzinfo=UTC)
    first = older({"price": Decimal("1.50"), "note": "x"}, value_of("rv-avro"))
    second = newer({"price": Decimal("2.50"), "note": None, "at": at}, value_of("rv-avro"))
    column = pa.array([first, None, second, first], pa.binary())
    found = values.decoded(column)
    ids = id_of(first), id_of(second)
    assert [group.schema for group in found.rows] == [WriterSchema(each) for each in sorted(ids)]
    assert [group.positions.to_pylist() for group in found.rows] == [[0, 3], [2]]
    assert rows_of(found) == {
        0: {"price": Decimal("1.50"), "note": "x"},
        2: {"price": Decimal("2.50"), "note": None, "at": at},
        3: {"price": Decimal("1.50"), "note": "x"},
    }
    assert found.rows[0].columns == pa.schema(
        [pa.field("price", pa.decimal128(9, 2), False), pa.field("note", pa.string())]
    )
    assert values.columns_of(WriterSchema(ids[1])).names == ["price", "note", "at"]
    assert found.schema_ids.equals(pa.array([ids[0], None, ids[1], ids[0]], pa.int32()))
    assert found.reasons.equals(pa.nulls(4, pa.string())), "a null value has no reason"
    values.decoded(column.slice(1))
    assert client.requested_ids == sorted(ids), "asked once for each id"
    assert values.statistics() == {"schemas": 2, "unknown": 0, "decoded": 5, "failed": 0}


def test_values_without_a_row_have_a_reason(
    confluent: SchemaRegistryClient, rest: RestClient, values: RegisteredValues
) -> None:
    good = AvroSerializer(confluent, avro_record("Order", "id"))({"id": 7}, value_of("rv-reasons"))
    recursive = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
    unusable = rest.register("rv-recursive", json.dumps(recursive))["id"]
    column = pa.array([good, b"", b"plain", framed(9999, b"\2"), good[:5], framed(unusable, b"\0"), good])
    found = values.decoded(column)
    assert rows_of(found) == {0: {"id": 7}, 6: {"id": 7}}
    unframed_reason = (
        "the value does not begin with a byte 0 and a schema id, as serializers of a schema registry write it"
    )
    assert found.reasons.to_pylist() == [
        None,
        unframed_reason,
        unframed_reason,
        unusable_reason(9999, "Schema 9999 not found"),
        "the value is not Avro of Order: it ends too early, after 0 bytes",
        unusable_reason(unusable, "next: R contains itself, which a column cannot"),
        None,
    ]
    assert found.schema_ids.to_pylist() == [id_of(good), None, None, 9999, id_of(good), unusable, id_of(good)]
    with pytest.raises(SchemaError, match="Schema 9999 not found"):
        values.columns_of(WriterSchema(9999))
    with pytest.raises(SchemaError, match="next: R contains itself"):
        values.columns_of(WriterSchema(unusable))


def test_a_column_without_values_has_no_rows(values: RegisteredValues) -> None:
    for column in (pa.array([], pa.binary()), pa.array([None], pa.binary())):
        found = values.decoded(column)
        assert (found.rows, len(found.schema_ids), len(found.reasons)) == ((), len(column), len(column))


def test_json_values_are_rows_of_the_properties(
    confluent: SchemaRegistryClient, values: RegisteredValues
) -> None:
    confluent.register_schema("rv-item", Schema('{"type":"integer"}', "JSON"))
    text = json.dumps(
        {**JSON_ORDER, "properties": {**JSON_ORDER["properties"], "item": {"$ref": "item.json"}}}
    )
    schema = Schema(text, "JSON", [SchemaReference("item.json", "rv-item", 1)])
    value = JSONSerializer(schema, confluent)(
        {"id": 7, "day": "2026-05-17", "item": 3, "x": 1}, value_of("rv-json")
    )
    found = values.decoded(pa.array([value, framed(id_of(value), b'{"id":"7"}')]))
    assert rows_of(found) == {0: {"id": 7, "day": datetime(2026, 5, 17, tzinfo=UTC).date(), "item": 3}}
    assert (
        found.reasons[1].as_py()
        == 'the value is not JSON of Order: id is "7"; it must be an integer of 64 bits'
    )


def message_classes(file: pb.FileDescriptorProto) -> dict[str, Any]:
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClassesForFiles([file.name], pool)


def shop_file() -> pb.FileDescriptorProto:
    """Return a file of the messages Order, Return, and Return.Item."""
    file = pb.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    kinds = pb.FieldDescriptorProto
    order, refund = file.message_type.add(name="Order"), file.message_type.add(name="Return")
    item = refund.nested_type.add(name="Item")
    order.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=1)
    refund.field.add(name="why", number=1, type=kinds.TYPE_STRING, label=1)
    item.field.add(name="sku", number=1, type=kinds.TYPE_STRING, label=1)
    return file


def test_protobuf_values_are_of_the_message_in_the_value(
    confluent: SchemaRegistryClient, values: RegisteredValues
) -> None:
    classes = message_classes(shop_file())
    messages = [
        classes["shop.Order"](id=7),
        classes["shop.Return"](why="broken"),
        classes["shop.Return"].Item(sku="a"),
        classes["shop.Order"](id=8),
    ]
    column = [ProtobufSerializer(type(each), confluent)(each, value_of("rv-protobuf")) for each in messages]
    schema_id = id_of(column[0])
    broken = [framed(schema_id, b""), framed(schema_id, b"\2\x0e"), framed(schema_id, b"\2\0\x08\x09")]
    found = values.decoded(pa.array([*column, *broken]))
    assert [group.schema for group in found.rows] == [
        WriterSchema(schema_id, indexes) for indexes in ((0,), (1,), (1, 0))
    ]
    assert rows_of(found) == {0: {"id": 7}, 1: {"why": "broken"}, 2: {"sku": "a"}, 3: {"id": 8}, 6: {"id": 9}}
    assert found.reasons.to_pylist()[4:6] == [
        "the value is not Protobuf: it has no indexes of a message behind its schema id",
        unusable_reason(schema_id, "it has no message 7"),
    ]
    assert values.columns_of(WriterSchema(schema_id)).names == ["id"], "the first message"
    assert values.columns_of(WriterSchema(schema_id, (1, 0))).names == ["sku"]


def test_messages_among_maps_are_those_of_confluent(
    confluent: SchemaRegistryClient, client: CountingClient, values: RegisteredValues
) -> None:
    """Confluent's serializers count the messages of which maps consist, wherever they are declared."""
    file = shop_file()
    kinds = pb.FieldDescriptorProto
    order = file.message_type[0]
    for name in ("Early", "NotesEntry", "Late"):
        added = order.nested_type.add(name=name)
        for number, field in ((1, "key"), (2, "value")):
            added.field.add(name=field, number=number, type=kinds.TYPE_STRING, label=1)
    order.nested_type[1].options.map_entry = True
    order.field.add(
        name="notes", number=2, type=kinds.TYPE_MESSAGE, label=3, type_name=".shop.Order.NotesEntry"
    )
    classes = message_classes(file)
    early, late = classes["shop.Order"].Early(key="a"), classes["shop.Order"].Late(key="b")
    column = []
    for each in (early, late):
        value = ProtobufSerializer(type(each), confluent)(each, value_of("rv-maps"))
        assert ProtobufDeserializer(type(each), {}, confluent)(value, value_of("rv-maps")) == each
        column.append(value)
    assert rows_of(values.decoded(pa.array(column))) == {
        0: {"key": "a", "value": ""},
        1: {"key": "b", "value": ""},
    }
    latest = client.version("rv-maps-value").schema
    for name, each in (("Order.Early", early), ("Order.Late", late)):
        codec = codec_of(SchemaType.PROTOBUF, client.parsed(latest), name)
        body = codec.encode({"key": each.key})
        assert framed(id_of(column[0]), body) in column
        assert codec.decode(body) == {"key": each.key}


def test_any_error_of_a_schema_is_the_reason_of_its_values(
    rest: RestClient, values: RegisteredValues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise TypeError("no column has the name \ud800")

    monkeypatch.setattr("barnabas.codecs.registered._decoder", refuse)
    schema_id = rest.register("rv-odd", avro_record("Odd", "a"))["id"]
    found = values.decoded(pa.array([framed(schema_id, b"\2")]))
    problem = "TypeError: no column has the name \\ud800"
    assert found.reasons.to_pylist() == [unusable_reason(schema_id, problem)]


def test_an_id_that_was_unknown_is_asked_for_again(rest: RestClient, values: RegisteredValues) -> None:
    last_id = rest.register("rv-last", avro_record("Last", "a"))["id"]
    column = pa.array([framed(last_id + 1, b"\2")])
    assert values.decoded(column).reasons.null_count == 0
    assert values.statistics()["unknown"] == 1
    assert rest.register("rv-next", avro_record("Next", "a"))["id"] == last_id + 1
    assert rows_of(values.decoded(column)) == {0: {"a": 1}}
    assert values.statistics() == {"schemas": 1, "unknown": 0, "decoded": 1, "failed": 1}


def test_a_registry_that_does_not_respond_is_an_error_and_not_a_reason(broker: EmbeddedBroker) -> None:
    with running_registry(broker.bootstrap) as server:
        schema_id = RestClient(server.url).register("rv-gone", avro_record("Gone", "a"))["id"]
        values = RegisteredValues(RegistryClient(server.url))
        known = pa.array([framed(schema_id, b"\2")])
        assert rows_of(values.decoded(known)) == {0: {"a": 1}}
    assert rows_of(values.decoded(known)) == {0: {"a": 1}}, "a schema that is known needs no registry"
    with pytest.raises(RegistryUnavailable, match="does not respond"):
        values.decoded(pa.array([framed(schema_id + 1, b"\2")]))
    with pytest.raises(RegistryUnavailable, match="does not respond"):
        values.columns_of(WriterSchema(schema_id + 1))


def test_a_registry_that_refuses_access_is_an_error_and_not_a_reason(
    broker: EmbeddedBroker, tmp_path: Any
) -> None:
    (tmp_path / "users").write_text("a=b\n")
    with running_registry(broker.bootstrap, users_file=str(tmp_path / "users")) as server:
        values = RegisteredValues(RegistryClient(server.url))
        with pytest.raises(RegistryUnavailable, match="the schema registry refuses access: Unauthorized"):
            values.decoded(pa.array([framed(1, b"\2")]))
