"""Records of registry clients for Node and Go are read by Confluent's serializers for Python, and vice versa."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2 as pb
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClassesForFiles
from interop.clients import Client, ClientError

from barnabas.registry.serving import RegistryServer
from barnabas.testing import EmbeddedBroker
from interop import registry_clients
from support.registries import avro_record, running_registry

ClientNamed = Callable[[str], Client]
VALUE = {"item": {"sku": 3}, "note": "fragile"}


class Referring(NamedTuple):
    """A schema that refers to another, which is version 1 of a subject."""

    type: str
    text: str
    name: str  #: by which it refers to the other; empty if it does not
    item: str  #: the text of the other
    message: str = ""

    @property
    def subject(self) -> str:
        """The subject of the other; that of Protobuf is what Confluent's serializers choose."""
        return self.name if self.type == "PROTOBUF" else f"{self.type}-item"

    def for_client(self) -> dict[str, Any]:
        references = [{"name": self.name, "subject": self.subject, "version": 1}] if self.name else []
        return {"type": self.type, "text": self.text, "references": references, "message": self.message}

    def for_python(self) -> Schema:
        references = [SchemaReference(self.name, self.subject, 1)] if self.name else []
        return Schema(self.text, self.type, references)

    def inlined(self, reference: str) -> "Referring":
        """Return the schema with the other in place of the reference."""
        return self._replace(text=self.text.replace(reference, self.item), name="")


AVRO = Referring(
    "AVRO",
    json.dumps(
        {
            "type": "record",
            "name": "shop.Basket",
            "fields": [
                {"name": "item", "type": "shop.Item"},
                {"name": "note", "type": ["null", "string"], "default": None},
            ],
        }
    ),
    "shop.Item",
    avro_record("shop.Item", "sku"),
)
JSON = Referring(
    "JSON",
    json.dumps(
        {
            "title": "Basket",
            "type": "object",
            "properties": {"item": {"$ref": "https://shop.example/item.json"}, "note": {"type": "string"}},
        }
    ),
    "https://shop.example/item.json",
    json.dumps(
        {
            "$id": "https://shop.example/item.json",
            "type": "object",
            "properties": {"sku": {"type": "integer"}},
        }
    ),
)
#: Where they refer to the other.
REFERENCES = {"AVRO": '"shop.Item"', "JSON": '{"$ref": "https://shop.example/item.json"}'}
_ITEM = 'syntax = "proto3"; package shop; message Item { int32 sku = 1; }'
PROTOBUF = Referring(
    "PROTOBUF",
    """syntax = "proto3"; package shop; import "item.proto"; message Other { bool is_empty = 1; }
        message Baskets { message Basket { .shop.Item item = 1; string note = 2; } }""",
    "item.proto",
    _ITEM,
    "shop.Baskets.Basket",
)
#: KafkaJS has only the first message of a file.
PROTOBUF_FIRST = PROTOBUF._replace(
    text="""syntax = "proto3"; package shop; import "item.proto";
        message Basket { .shop.Item item = 1; string note = 2; }""",
    message="Basket",  # it puts the package before it
)


@pytest.fixture
def python(registry: RegistryServer) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def read(broker: EmbeddedBroker, topic: str) -> bytes:
    """Return the first value of a topic."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        return message.value() or b""
    finally:
        consumer.close()


def write(broker: EmbeddedBroker, topic: str, value: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value)
    assert producer.flush(20) == 0


SERIALIZERS: dict[str, Callable[[SchemaRegistryClient, Schema], tuple[Any, Any]]] = {
    "AVRO": lambda python, schema: (AvroDeserializer(python), AvroSerializer(python, schema)),
    "JSON": lambda python, schema: (
        JSONDeserializer(schema, schema_registry_client=python),
        JSONSerializer(schema, python),
    ),
}


@pytest.mark.parametrize("schema", [AVRO, JSON], ids=["avro", "json"])
@pytest.mark.parametrize("name", ["kafkajs", "sr", "srclient"])
def test_avro_and_json(
    client_named: ClientNamed,
    python: SchemaRegistryClient,
    kafka_broker: EmbeddedBroker,
    name: str,
    schema: Referring,
) -> None:
    client, topic = client_named(name), f"{name}-{schema.type}"
    if name == "srclient":  # its codecs know no references
        schema = schema.inlined(REFERENCES[schema.type])
    else:
        client.do("register", subject=schema.subject, schema={"type": schema.type, "text": schema.item})
    registered = registry_clients.produce(client, topic, schema.for_client(), VALUE)
    deserialize, serialize = SERIALIZERS[schema.type](python, schema.for_python())
    assert deserialize(read(kafka_broker, topic), value_of(topic)) == VALUE
    other = {**VALUE, "note": "heavy"}
    data = serialize(other, value_of(topic))
    assert int.from_bytes((data or b"")[1:5], "big") == registered
    write(kafka_broker, topic, data)
    assert registry_clients.consume(client, topic, 2) == [VALUE, other]


def basket_class(schema: Referring) -> Any:
    """Return the class that protoc would generate for a schema of Protobuf."""
    item = pb.FileDescriptorProto(name="item.proto", package="shop", syntax="proto3")
    item.message_type.add(name="Item").field.add(name="sku", number=1, type=5, label=1)
    file = pb.FileDescriptorProto(name="basket.proto", package="shop", syntax="proto3")
    file.dependency.append("item.proto")
    messages = file.message_type
    if schema is PROTOBUF:
        messages.add(name="Other").field.add(name="is_empty", number=1, type=8, label=1)
        messages = messages.add(name="Baskets").nested_type
    basket = messages.add(name="Basket")
    basket.field.add(name="item", number=1, type=11, label=1, type_name=".shop.Item")
    basket.field.add(name="note", number=2, type=9, label=1)
    pool = DescriptorPool()
    pool.Add(item)
    pool.Add(file)
    classes = GetMessageClassesForFiles([file.name], pool)
    return classes["shop.Baskets"].Basket if schema is PROTOBUF else classes["shop.Basket"]


def test_protobuf_of_go(
    client_named: ClientNamed, python: SchemaRegistryClient, kafka_broker: EmbeddedBroker
) -> None:
    client, topic, basket = client_named("sr"), "sr-PROTOBUF", basket_class(PROTOBUF)
    client.do("register", subject=PROTOBUF.subject, schema={"type": "PROTOBUF", "text": PROTOBUF.item})
    registered = registry_clients.produce(client, topic, PROTOBUF.for_client(), VALUE)
    data = read(kafka_broker, topic)
    assert data[5:8] == b"\x04\x02\0", "two indexes, 1 and 0"
    decoded = ProtobufDeserializer(basket, {}, python)(data, value_of(topic))
    assert json_format.MessageToDict(decoded) == VALUE
    other = {**VALUE, "note": "heavy"}
    data = ProtobufSerializer(basket, python)(json_format.ParseDict(other, basket()), value_of(topic)) or b""
    assert int.from_bytes(data[1:5], "big") == registered, "text and descriptor are one schema"
    write(kafka_broker, topic, data)
    assert registry_clients.consume(client, topic, 2, PROTOBUF.message) == [VALUE, other]


def test_protobuf_for_node(
    client_named: ClientNamed, python: SchemaRegistryClient, kafka_broker: EmbeddedBroker
) -> None:
    """KafkaJS reads what Python writes. What it writes itself has no index of the message, so only it can read it."""
    client, topic, basket = client_named("kafkajs"), "kafkajs-PROTOBUF", basket_class(PROTOBUF_FIRST)
    value = json_format.ParseDict(VALUE, basket())
    write(kafka_broker, topic, ProtobufSerializer(basket, python)(value, value_of(topic)))
    registry_clients.produce(client, topic, PROTOBUF_FIRST.for_client(), VALUE)
    assert registry_clients.consume(client, topic, 2) == [VALUE, VALUE]
    assert python.get_versions(f"{topic}-value") == [1], "text and descriptor are one schema"


@pytest.mark.parametrize("name", ["kafkajs", "sr", "srclient"])
def test_logins(kafka_broker: EmbeddedBroker, tmp_path: Path, name: str) -> None:
    users = tmp_path / "users"
    users.write_text("alice=a:b%41\n")
    schema = {"type": "AVRO", "text": avro_record("Order", "id")}
    with running_registry(
        kafka_broker.bootstrap, topic=f"_schemas-{name}", users_file=str(users)
    ) as registry:

        def started(password: str) -> Client:
            login = ("alice", password)
            return registry_clients.start(name, registry.url, kafka_broker.bootstrap, tmp_path / "log", login)

        client = started("a:b%41")
        assert client.do("register", subject="orders-value", schema=schema)
        client.close()
        client = started("wrong")
        with pytest.raises(ClientError, match=r"401|Unauthorized"):
            client.do("register", subject="orders-value", schema=schema)
        client.close()
