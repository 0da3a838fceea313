"""Confluent's serializers for Python work unchanged."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClassesForFiles

from barnabas.registry.serving import RegistryServer
from support.registries import avro_record

ORDER = avro_record("Order", "id")
JSON_ORDER = json.dumps(
    {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
)


@pytest.fixture
def client(registry: RegistryServer) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def schema_id_in(data: bytes) -> int:
    assert data[:1] == b"\0"
    return int.from_bytes(data[1:5], "big")


def test_avro_is_registered_by_the_first_value_and_decoded_by_its_id(client: SchemaRegistryClient) -> None:
    data = AvroSerializer(client, ORDER)({"id": 7}, value_of("avro"))
    assert data is not None
    assert AvroDeserializer(client)(data, value_of("avro")) == {"id": 7}
    registered = client.get_latest_version("avro-value")
    assert (registered.schema_id, registered.version) == (schema_id_in(data), 1)
    assert registered.schema is not None
    assert registered.schema.schema_str == ORDER


def test_a_reader_of_a_newer_schema_fills_in_defaults(client: SchemaRegistryClient) -> None:
    data = AvroSerializer(client, ORDER)({"id": 7}, value_of("evolved"))
    newer = avro_record("Order", "id", "count?")
    client.register_schema("evolved-value", Schema(newer, "AVRO"))
    assert AvroDeserializer(client, newer)(data, value_of("evolved")) == {"id": 7, "count": 0}


def test_an_incompatible_schema_is_refused_when_a_producer_registers_it(client: SchemaRegistryClient) -> None:
    AvroSerializer(client, ORDER)({"id": 7}, value_of("refused"))
    incompatible = AvroSerializer(client, avro_record("Order", "id", "count"))
    with pytest.raises(SchemaRegistryError, match="READER_FIELD_MISSING_DEFAULT_VALUE") as refused:
        incompatible({"id": 7, "count": 1}, value_of("refused"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)


def test_a_producer_without_registration_uses_the_latest_version(client: SchemaRegistryClient) -> None:
    client.register_schema("latest-value", Schema(ORDER, "AVRO"))
    newest = client.register_schema("latest-value", Schema(avro_record("Order", "id", "count?"), "AVRO"))
    options = {"auto.register.schemas": False, "use.latest.version": True}
    data = AvroSerializer(client, ORDER, conf=options)({"id": 7, "count": 2}, value_of("latest"))
    assert data is not None
    assert schema_id_in(data) == newest
    assert AvroDeserializer(client)(data, value_of("latest")) == {"id": 7, "count": 2}


def test_a_producer_without_registration_may_choose_the_latest_version_with_metadata(
    client: SchemaRegistryClient,
) -> None:
    gold, tin = (Metadata(None, MetadataProperties({"tier": tier}), None) for tier in ("gold", "tin"))
    chosen = client.register_schema("metadata-value", Schema(ORDER, "AVRO", metadata=gold))
    client.register_schema("metadata-value", Schema(avro_record("Order", "id", "n?"), "AVRO", metadata=tin))
    options = {"auto.register.schemas": False, "use.latest.with.metadata": {"tier": "gold"}}
    data = AvroSerializer(client, ORDER, conf=options)({"id": 7}, value_of("metadata"))
    assert schema_id_in(data or b"") == chosen


def test_a_producer_without_registration_fails_for_an_unknown_schema(client: SchemaRegistryClient) -> None:
    client.register_schema("unknown-value", Schema(ORDER, "AVRO"))
    serializer = AvroSerializer(client, avro_record("Other", "id"), conf={"auto.register.schemas": False})
    with pytest.raises(SchemaRegistryError) as missing:
        serializer({"id": 7}, value_of("unknown"))
    assert (missing.value.http_status_code, missing.value.error_code) == (404, 40403)


def test_avro_with_a_reference(client: SchemaRegistryClient) -> None:
    client.register_schema("references-item", Schema(avro_record("shop.Item", "sku"), "AVRO"))
    text = json.dumps(
        {"type": "record", "name": "shop.Basket", "fields": [{"name": "item", "type": "shop.Item"}]}
    )
    schema = Schema(text, "AVRO", [SchemaReference("shop.Item", "references-item", 1)])
    data = AvroSerializer(client, schema)({"item": {"sku": 3}}, value_of("references"))
    assert AvroDeserializer(client)(data, value_of("references")) == {"item": {"sku": 3}}
    assert client.get_referenced_by("references-item", 1) == [schema_id_in(data or b"")]


@pytest.mark.parametrize("reader", [JSON_ORDER, None])
def test_json_is_registered_checked_and_decoded(client: SchemaRegistryClient, reader: str | None) -> None:
    serializer = JSONSerializer(JSON_ORDER, client)
    data = serializer({"id": 7}, value_of("json"))
    assert JSONDeserializer(reader, schema_registry_client=client)(data, value_of("json")) == {"id": 7}
    with pytest.raises(SerializationError, match="is not of type"):
        serializer({"id": "seven"}, value_of("json"))


def test_json_with_a_reference(client: SchemaRegistryClient) -> None:
    client.register_schema("json-item", Schema('{"type":"integer"}', "JSON"))
    text = '{"title":"Basket","type":"object","properties":{"item":{"$ref":"item.json"}}}'
    schema = Schema(text, "JSON", [SchemaReference("item.json", "json-item", 1)])
    data = JSONSerializer(schema, client)({"item": 3}, value_of("json-references"))
    decoded = JSONDeserializer(schema, schema_registry_client=client)(data, value_of("json-references"))
    assert decoded == {"item": 3}


def message_class(files: list[pb.FileDescriptorProto], name: str) -> Any:
    """Return the class that protoc would generate."""
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    return GetMessageClassesForFiles([files[-1].name], pool)[name]


def file_with(name: str, *messages: str, dependency: str = "") -> pb.FileDescriptorProto:
    """Return a file of messages with a field `id`, and of a type in another file `item`."""
    file = pb.FileDescriptorProto(name=name, package="shop", syntax="proto3")
    for message in messages:
        added = file.message_type.add(name=message)
        added.field.add(name="id", number=1, type=pb.FieldDescriptorProto.TYPE_INT64, label=1)
        if dependency:
            kind = pb.FieldDescriptorProto.TYPE_MESSAGE
            added.field.add(name="item", number=2, type=kind, label=1, type_name=".shop.Item")
    if dependency:
        file.dependency.append(dependency)
    return file


def test_protobuf_is_registered_and_decoded(client: SchemaRegistryClient) -> None:
    order = message_class([file_with("order.proto", "Other", "Order")], "shop.Order")
    data = ProtobufSerializer(order, client)(order(id=7), value_of("protobuf"))
    assert data is not None
    assert data[5:8] == b"\x02\x02\x08"  # one index, which is 1, then field 1 of the message
    assert ProtobufDeserializer(order, {}, client)(data, value_of("protobuf")) == order(id=7)
    text = client.get_latest_version("protobuf-value").schema
    assert text is not None
    assert "message Order {\n  int64 id = 1;\n}" in (text.schema_str or "")


def test_protobuf_registers_the_files_that_it_imports(client: SchemaRegistryClient) -> None:
    files = [file_with("item.proto", "Item"), file_with("basket.proto", "Basket", dependency="item.proto")]
    basket = message_class(files, "shop.Basket")
    value = basket(id=7, item={"id": 8})
    data = ProtobufSerializer(basket, client)(value, value_of("imports"))
    assert ProtobufDeserializer(basket, {}, client)(data, value_of("imports")) == value
    registered = client.get_latest_version("imports-value").schema
    assert registered is not None
    references = [(each.name, each.subject, each.version) for each in registered.references or []]
    assert references == [("item.proto", "item.proto", 1)]


def test_protobuf_refuses_another_encoding_of_a_field(client: SchemaRegistryClient) -> None:
    order = message_class([file_with("order.proto", "Order")], "shop.Order")
    ProtobufSerializer(order, client)(order(id=7), value_of("changed"))
    file = file_with("order.proto", "Order")
    file.message_type[0].field[0].type = pb.FieldDescriptorProto.TYPE_STRING
    changed = message_class([file], "shop.Order")
    with pytest.raises(SchemaRegistryError, match="FIELD_SCALAR_KIND_CHANGED"):
        ProtobufSerializer(changed, client)(changed(id="7"), value_of("changed"))


CALLS: list[Callable[[SchemaRegistryClient], Any]] = [
    lambda client: client.get_subjects(),
    lambda client: client.get_versions("calls-value"),
    lambda client: client.get_compatibility(),
    lambda client: client.get_mode("calls-value"),
    lambda client: client.get_contexts(),
    lambda client: client.get_schema_types(),
    lambda client: client.test_compatibility("calls-value", Schema(ORDER, "AVRO")),
    lambda client: client.test_compatibility_all_versions("calls-value", Schema(ORDER, "AVRO")),
    lambda client: client.get_config("calls-value"),
]


def test_the_methods_of_the_client_understand_the_responses(client: SchemaRegistryClient) -> None:
    client.register_schema("calls-value", Schema(ORDER, "AVRO"))
    client.set_compatibility("calls-value", "FULL")
    client.update_mode("calls-value", "READWRITE")
    results = [call(client) for call in CALLS]
    assert "calls-value" in results[0]
    assert results[1:6] == [[1], "BACKWARD", "READWRITE", ["."], ["JSON", "PROTOBUF", "AVRO"]]
    assert results[6:8] == [True, True]
    assert results[8].compatibility_level == "FULL"
    assert client.delete_subject("calls-value") == [1]
    assert client.delete_subject("calls-value", permanent=True) == [1]
