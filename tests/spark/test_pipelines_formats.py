"""Formats of pipelines in real Spark: Avro and Protobuf from and to topics, with conversion errors."""

import json
from io import BytesIO

import pytest
from fastavro import schemaless_writer
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from barnabas.registry.codecs.framing import framed
from pyspark_barnabas.pipelines.planning import pipeline_plan
from pyspark_barnabas.pipelines.state import FlowState
from support.pipelines import Scene
from support.registries import RestClient, avro_record, running_registry

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["SMALL", "LARGE"]}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "items", "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
    ],
}
FRAME = b"\0\0\0\0\x07"


def avro(order: dict[str, object]) -> bytes:
    stream = BytesIO()
    schemaless_writer(stream, ORDER, order)
    return FRAME + stream.getvalue()


@pytest.fixture
def avro_scene(scene: Scene) -> Scene:
    (scene.home / "order.avsc").write_text(json.dumps(ORDER))
    return scene


FROM_AVRO_TO_AVRO = """
  avro:
    from: {topic: SOURCE, format: avro, schema: order.avsc, framing: confluent, schema_id: 7}
    sql: SELECT id, IF(id = 3, 'HUGE', kind) AS kind, at, items FROM input
    to: {topic: TARGET, format: avro, schema: order.avsc, framing: confluent, schema_id: 7, key: id}
    dead_letters: DEAD
"""


def test_avro_is_written_once_and_conversion_errors_are_dead_letters_with_a_reason(
    avro_scene: Scene,
) -> None:
    good = {"id": 1, "kind": "SMALL", "at": 1_700_000_000_123, "items": {"a": [1.5, 2.5], "b": []}}
    other = {"id": 2, "kind": "LARGE", "at": None, "items": {}}
    cut = avro(good)[:-3]
    avro_scene.send(avro(good), avro(other), avro({**good, "id": 3}), cut, b"", None, b"\0\0\0\0\x08rest")
    done = avro_scene.run(FROM_AVRO_TO_AVRO)["avro"]
    assert (done.state, done.error, done.rows_out, done.dead_letters) == (FlowState.DONE, None, 2, 5)
    avro_scene.remove_last_commit("avro")
    assert avro_scene.run(FROM_AVRO_TO_AVRO)["avro"].state is FlowState.DONE
    written = [value for value, _ in avro_scene.raw_records(avro_scene.target)]
    assert sorted(written) == sorted([avro(good), avro(other)])
    letters = {
        value: headers["barnabas.reason"] for value, headers in avro_scene.raw_records(avro_scene.dead)
    }
    assert letters[cut].startswith("the value is not Avro of shop.Order: it ends too early, after")
    assert letters[b"\0\0\0\0\x08rest"] == "the value is not Avro of shop.Order: its schema id is 8, not 7"
    [row] = [value for value in letters if value.startswith(b"{")]
    assert json.loads(row)["id"] == 3
    assert letters[row] == "the row cannot be Avro of shop.Order: kind is 'HUGE'; it must be SMALL or LARGE"


FROM_REGISTRY = """
  evolved:
    from: {topic: SOURCE, format: avro, registry: "URL"}
    to: {topic: TARGET, format: avro, registry: "URL", subject: copies}
    dead_letters: DEAD
"""


def test_values_of_several_versions_are_read_by_their_schemas_in_a_registry(scene: Scene) -> None:
    with running_registry(scene.broker.bootstrap) as server:
        rest = RestClient(server.url)
        subject = f"{scene.source}-value"
        first = rest.register(subject, avro_record("Order", "id"))["id"]
        second = rest.register(subject, avro_record("Order", "count?", "id"))["id"]
        written = rest.register("copies", avro_record("Copy", "id", "count"))["id"]
        scene.send(framed(first, b"\x02"), framed(second, b"\x06\x04"), framed(999, b"\x02"))
        done = scene.run(FROM_REGISTRY.replace("URL", server.url))["evolved"]
    assert (done.state, done.error, done.rows_out, done.dead_letters) == (FlowState.DONE, None, 2, 1)
    values = sorted(value for value, _ in scene.raw_records(scene.target))
    assert values == [framed(written, b"\x02\x00"), framed(written, b"\x04\x06")]


def test_a_plan_shows_columns_that_differ_from_the_schema(avro_scene: Scene) -> None:
    wrong = FROM_AVRO_TO_AVRO.replace("at, items", "1 AS at, 'x' AS more")
    file = avro_scene.declare(wrong)
    [plan] = pipeline_plan(avro_scene.spark, avro_scene.pipeline)
    assert (plan.error or "").startswith(f"{file}:8: schema: column more is not in the schema, which has id")
    assert "column at is int, the schema requires timestamp; CAST(at AS TIMESTAMP) would be" in plan.error
    assert "column items is missing; the schema requires it as map<string,array<double>>" in plan.error


#: Name, type, type's name, label.
TRIP = (
    ("id", Field.TYPE_UINT64, "", Field.LABEL_OPTIONAL),
    ("at", Field.TYPE_MESSAGE, ".google.protobuf.Timestamp", Field.LABEL_OPTIONAL),
    ("took", Field.TYPE_MESSAGE, ".google.protobuf.Duration", Field.LABEL_OPTIONAL),
    ("legs", Field.TYPE_MESSAGE, ".shop.Trip.Leg", Field.LABEL_REPEATED),
    ("named", Field.TYPE_MESSAGE, ".shop.Trip.NamedEntry", Field.LABEL_REPEATED),
)


def trip_file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="trip.proto", package="shop", syntax="proto3")
    file.dependency.extend(each.DESCRIPTOR.name for each in (timestamp_pb2, duration_pb2))
    trip = file.message_type.add(name="Trip")
    for number, (name, kind, type_name, label) in enumerate(TRIP, 1):
        trip.field.add(name=name, number=number, type=kind, type_name=type_name or None, label=label)
    leg = trip.nested_type.add(name="Leg")
    leg.field.add(name="km", number=1, type=Field.TYPE_FLOAT, label=Field.LABEL_OPTIONAL)
    entry = trip.nested_type.add(name="NamedEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=Field.TYPE_MESSAGE,
        type_name=".shop.Trip.Leg",
        label=Field.LABEL_OPTIONAL,
    )
    return file


FROM_PROTOBUF_TO_PROTOBUF = """
  protobuf:
    from: {topic: SOURCE, format: protobuf, schema: trip.desc, message: shop.Trip}
    to: {topic: TARGET, format: protobuf, schema: trip.desc, message: shop.Trip, framing: confluent, schema_id: 7}
"""


def test_nested_protobuf_is_written_and_invalid_bytes_fail_a_flow_without_dead_letters(
    scene: Scene,
) -> None:
    file = trip_file()
    (scene.home / "trip.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    for each in (timestamp_pb2.DESCRIPTOR.serialized_pb, duration_pb2.DESCRIPTOR.serialized_pb):
        pool.AddSerializedFile(each)
    pool.AddSerializedFile(file.SerializeToString())
    trip = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Trip"))()
    trip.id = 2**64 - 1
    trip.at.seconds, trip.at.nanos, trip.took.seconds = -1, 5_000, -3
    trip.legs.add().km = 1.5
    trip.named["a"].km = 0.5
    scene.send(trip.SerializeToString(), b"")
    done = scene.run(FROM_PROTOBUF_TO_PROTOBUF)["protobuf"]
    assert (done.state, done.error, done.rows_out) == (FlowState.DONE, None, 2)
    written = {value for value, _ in scene.raw_records(scene.target)}
    assert written == {FRAME + b"\0" + trip.SerializeToString(), FRAME + b"\0"}
    scene.send(b"\xff")
    failed = scene.run(FROM_PROTOBUF_TO_PROTOBUF)["protobuf"]
    assert failed.state is FlowState.FAILED
    assert (failed.error or "").startswith("the value is not Protobuf of shop.Trip: it cannot be parsed: ")
    assert "set dead_letters: TOPIC to continue without such records" in (failed.error or "")
