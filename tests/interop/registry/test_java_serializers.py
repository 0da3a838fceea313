"""Confluent's serializers for Java work unchanged, and what they write is read by those for Python, and vice versa."""

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from interop.clients import Client, ClientError

from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.registry.client import RegistryClient
from barnabas.registry.codecs.records import RecordDecoder
from barnabas.registry.serving import RegistryServer
from support.registries import avro_record

ORDER = {"type": "AVRO", "text": avro_record("Order", "id")}
#: The message of most tests is the second one, in another.
SHOP = {
    "type": "PROTOBUF",
    "text": """syntax = "proto3"; package shop;
        message Order { int64 id = 1; map<string, int32> counts = 2; message Line { string sku = 1; } }
        message Basket { repeated Order.Line lines = 1; message Owner { string name = 1; } Owner owner = 2; }""",
}


@pytest.fixture
def client(registry: RegistryServer) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def serialized(java: Client, topic: str, schema: dict[str, Any], value: Any, **options: Any) -> bytes:
    return bytes.fromhex(java.do("serialize", topic=topic, schema=schema, value=value, **options))


def deserialized(java: Client, topic: str, kind: str, data: bytes) -> Any:
    return java.do("deserialize", topic=topic, type=kind, data=data.hex())


def test_avro_of_java_is_read_by_python_and_vice_versa(java: Client, client: SchemaRegistryClient) -> None:
    of_java = serialized(java, "avro", ORDER, {"id": 7})
    assert AvroDeserializer(client)(of_java, value_of("avro")) == {"id": 7}
    of_python = AvroSerializer(client, ORDER["text"])({"id": 7}, value_of("avro"))
    assert of_python == of_java, "both registered one schema"
    assert deserialized(java, "avro", "AVRO", of_java) == {"id": 7}


def test_avro_with_a_reference(java: Client, client: SchemaRegistryClient) -> None:
    item = {"type": "AVRO", "text": avro_record("shop.Item", "sku")}
    java.do("register", subject="referenced-item", schema=item)
    basket: dict[str, Any] = {
        "type": "AVRO",
        "text": json.dumps(
            {"type": "record", "name": "shop.Basket", "fields": [{"name": "item", "type": "shop.Item"}]}
        ),
        "references": [{"name": "shop.Item", "subject": "referenced-item", "version": 1}],
        "resolved": {"shop.Item": item["text"]},
    }
    java.do("register", subject="basket-value", schema=basket)
    data = serialized(java, "basket", basket, {"item": {"sku": 3}})
    assert AvroDeserializer(client)(data, value_of("basket")) == {"item": {"sku": 3}}
    assert deserialized(java, "basket", "AVRO", data) == {"item": {"sku": 3}}
    # the schema of a generated class
    inlined = {"type": "AVRO", "text": basket["text"].replace('"shop.Item"', item["text"])}
    config = {"auto.register.schemas": "false"}
    assert serialized(java, "basket", inlined, {"item": {"sku": 3}}, config=config) == data


def test_a_producer_may_use_the_latest_version_without_registering(java: Client) -> None:
    java.do("register", subject="latest-value", schema=ORDER)
    newer = {"type": "AVRO", "text": avro_record("Order", "id", "count?")}
    java.do("register", subject="latest-value", schema=newer)
    config = {"auto.register.schemas": "false", "use.latest.version": "true"}
    data = serialized(java, "latest", newer, {"id": 7, "count": 2}, config=config)
    assert int.from_bytes(data[1:5], "big") == java.do("latest", subject="latest-value")["id"]
    assert java.do("latest", subject="latest-value")["version"] == 2
    unknown = {"type": "AVRO", "text": avro_record("Unknown", "id")}
    with pytest.raises(ClientError, match="404 40403"):
        serialized(java, "latest", unknown, {"id": 7}, config={"auto.register.schemas": "false"})


def test_subjects_may_be_named_after_records(java: Client) -> None:
    strategy = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"
    serialized(java, "named", ORDER, {"id": 7}, config={"value.subject.name.strategy": strategy})
    assert "named-Order" in java.do("subjects")


@pytest.mark.parametrize("kind", ["AVRO", "PROTOBUF"])
def test_an_incompatible_schema_is_refused(java: Client, kind: str) -> None:
    text = 'syntax = "proto3"; message Order {{ {} id = 1; }}'
    texts = {
        "AVRO": (ORDER["text"], avro_record("Order", "id", "count")),
        "PROTOBUF": (text.format("int64"), text.format("string")),
    }[kind]
    first, second = ({"type": kind, "text": text} for text in texts)
    subject = f"refused-{kind}"
    java.do("register", subject=subject, schema=first)
    assert java.do("is_compatible", subject=subject, schema=first)
    assert not java.do("is_compatible", subject=subject, schema=second)
    with pytest.raises(ClientError, match="409 409"):
        java.do("register", subject=subject, schema=second)
    assert java.do("level", subject=subject, level="NONE") == "NONE"
    java.do("register", subject=subject, schema=second)
    assert java.do("versions", subject=subject) == [1, 2]


def test_versions_and_subjects_are_deleted(java: Client) -> None:
    java.do("register", subject="deleted", schema=ORDER)
    java.do("register", subject="deleted", schema={"type": "AVRO", "text": avro_record("Order", "id", "n?")})
    assert java.do("delete_version", subject="deleted", version="1") == 1
    assert java.do("delete_subject", subject="deleted") == [2]
    assert "deleted" not in java.do("subjects")
    assert java.do("delete_subject", subject="deleted", permanent=True) == [1, 2]
    with pytest.raises(ClientError, match="404 40401"):
        java.do("latest", subject="deleted")


def test_java_understands_the_text_that_the_registry_prints(
    java: Client, client: SchemaRegistryClient
) -> None:
    schema_id = client.register_schema("printed", Schema(SHOP["text"], "PROTOBUF"))
    assert "message Basket {" in java.do("schema", id=schema_id)


@pytest.mark.parametrize(
    ("message", "indexes", "value"),
    [
        ("shop.Order", b"\0", {"id": "7", "counts": {"a": 1}}),
        ("shop.Order.Line", b"\x04\0\0", {"sku": "x"}),
        ("shop.Basket", b"\x02\x02", {"lines": [{"sku": "x"}]}),
        ("shop.Basket.Owner", b"\x04\x02\0", {"name": "y"}),
    ],
)
def test_protobuf_of_java_is_decoded(
    java: Client, registry: RegistryServer, message: str, indexes: bytes, value: Any
) -> None:
    topic = message.replace(".", "-")
    data = serialized(java, topic, SHOP, value, message=message)
    assert data[5 : 5 + len(indexes)] == indexes
    assert deserialized(java, topic, "PROTOBUF", data) == value
    decoder = RecordDecoder(RegistryClient(registry.url), lambda: 0)
    decoded = decoder.decode(ConsumedRecord(topic, 0, 0, 0, None, data, []))
    assert json.loads(decoded.value or b"") == value


def test_protobuf_registers_the_files_that_it_imports(java: Client) -> None:
    item = 'syntax = "proto3"; package shop; message Item { string sku = 1; }'
    basket = {
        "type": "PROTOBUF",
        "text": 'syntax = "proto3"; import "item.proto"; message Basket { shop.Item item = 1; }',
        "references": [{"name": "item.proto", "subject": "item.proto", "version": 1}],
        "resolved": {"item.proto": item},
    }
    data = serialized(java, "imports", basket, {"item": {"sku": "x"}}, message="Basket")
    assert deserialized(java, "imports", "PROTOBUF", data) == {"item": {"sku": "x"}}
    assert java.do("versions", subject="item.proto") == [1]
