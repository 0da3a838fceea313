"""Decode values of a schema one at a time and as columns: ``python -m bench.value_columns``.

Prints records per second of CPU time on one core, the best of five rounds.
"""

import json
import random
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, NamedTuple

import pyarrow as pa
from fastavro import parse_schema, schemaless_writer
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from barnabas.codecs import ValueDecoder
from barnabas.codecs.avro import AvroCodec
from barnabas.codecs.columns import decoded, encoded, row_type
from barnabas.codecs.framing import Frame
from barnabas.codecs.json_schema import JsonSchemaDecoder
from barnabas.codecs.protobuf import ProtobufCodec
from barnabas.registry.json_schema.schema import JsonSchema

RECORDS_COUNT = 20_000
ROUNDS_COUNT = 5
FRAME = Frame(confluent=True, schema_id=7)
START = datetime(2026, 1, 1, tzinfo=UTC)


class Case(NamedTuple):
    text: str
    codec: ValueDecoder
    values: list[bytes]


def flat_rows() -> list[dict[str, Any]]:
    """Return events of ten fields."""
    rng = random.Random(1)
    return [
        {
            "id": number,
            "name": f"name {number}",
            "email": None if number % 3 else "someone@example.com",
            "count": number % 7,
            "price": rng.random(),
            "is_new": True,
            "city": f"city {number % 100}",
            "total": 100 * rng.random(),
            "code": 1_000 * number,
            "at": START + timedelta(milliseconds=137 * number),
        }
        for number in range(RECORDS_COUNT)
    ]


def orders() -> list[dict[str, Any]]:
    """Return rows of a nested record and a list of up to five records."""
    rng = random.Random(1)
    return [
        {
            "id": number,
            "customer": {"name": f"name {number}", "email": None if number % 3 else "someone@example.com"},
            "lines": [
                {"sku": f"sku {line}", "count": line, "price": rng.random()} for line in range(number % 6)
            ],
            "at": START + timedelta(milliseconds=137 * number),
        }
        for number in range(RECORDS_COUNT)
    ]


def micros(at: datetime) -> int:
    return (at - START) // timedelta(microseconds=1)


def avro_record(title: str, /, **fields: Any) -> dict[str, Any]:
    described = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": title, "fields": described}


def avro_case(text: str, schema: dict[str, Any], rows: Sequence[dict[str, Any]]) -> Case:
    parsed = parse_schema(json.loads(json.dumps(schema)))
    values = []
    for row in rows:
        stream = BytesIO()
        schemaless_writer(stream, parsed, row)
        values.append(FRAME.around(stream.getvalue()))
    return Case(text, AvroCodec(json.dumps(schema), FRAME), values)


def protobuf_case(text: str, file: FileDescriptorProto, rows: Sequence[dict[str, Any]]) -> Case:
    codec = ProtobufCodec(FileDescriptorSet(file=[file]).SerializeToString(), "Order", FRAME)
    table = pa.array([{**row, "at": micros(row["at"])} for row in rows], row_type(codec))
    return Case(text, codec, encoded(codec, table, [True] * len(rows))[0].to_pylist())


def protobuf_file(**fields: str) -> FileDescriptorProto:
    """Return a message; types with a capital letter are its nested messages."""
    file = FileDescriptorProto(name="order.proto", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order = file.message_type.add(name="Order")
    for name, parts in (
        ("Customer", {"name": "string", "email": "string"}),
        ("Line", {"sku": "string", "count": "int32", "price": "double"}),
    ):
        add_fields(order.nested_type.add(name=name), parts)
    add_fields(order, fields)
    return file


def add_fields(message: Any, fields: dict[str, str]) -> None:
    for number, (name, kind) in enumerate(fields.items(), 1):
        label = Field.LABEL_REPEATED if kind == "Line" else Field.LABEL_OPTIONAL
        field = message.field.add(name=name, number=number, label=label)
        if kind[0].isupper():
            field.type = Field.TYPE_MESSAGE
            field.type_name = ".google.protobuf.Timestamp" if kind == "Timestamp" else f".Order.{kind}"
        else:
            field.type = Field.Type.Value(f"TYPE_{kind.upper()}")


def json_case(text: str, properties: dict[str, Any], rows: Sequence[dict[str, Any]]) -> Case:
    schema = JsonSchema.parse(json.dumps(json_object(**properties)), {}, is_new=False)
    values = [FRAME.around(json.dumps(row, default=datetime.isoformat).encode()) for row in rows]
    return Case(text, JsonSchemaDecoder(schema, FRAME), values)


def json_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def cases() -> Iterator[Case]:
    string, whole, number = {"type": "string"}, {"type": "integer"}, {"type": "number"}
    time_of_json = {"type": "string", "format": "date-time"}
    time_of_avro = {"type": "long", "logicalType": "timestamp-micros"}
    flat = {"id": "long", "name": "string", "email": ["null", "string"], "count": "int", "price": "double"}
    flat |= {"is_new": "boolean", "city": "string", "total": "double", "code": "long", "at": time_of_avro}
    customer = avro_record("Customer", name="string", email=["null", "string"])
    line = avro_record("Line", sku="string", count="int", price="double")
    order = {
        "id": "long",
        "customer": customer,
        "lines": {"type": "array", "items": line},
        "at": time_of_avro,
    }
    yield avro_case("Avro, ten fields", avro_record("Flat", **flat), flat_rows())
    yield avro_case("Avro, orders", avro_record("Order", **order), orders())
    fields = {"id": "int64", "name": "string", "email": "string", "count": "int32", "price": "double"}
    fields |= {"is_new": "bool", "city": "string", "total": "double", "code": "int64", "at": "Timestamp"}
    rows = [{**row, "email": row["email"] or ""} for row in flat_rows()]
    yield protobuf_case("Protobuf, ten fields", protobuf_file(**fields), rows)
    rows = [
        {**row, "customer": {**row["customer"], "email": row["customer"]["email"] or ""}} for row in orders()
    ]
    of_order = protobuf_file(id="int64", customer="Customer", lines="Line", at="Timestamp")
    yield protobuf_case("Protobuf, orders", of_order, rows)
    properties = {"id": whole, "name": string, "email": string, "count": whole, "price": number}
    properties |= {
        "is_new": {"type": "boolean"},
        "city": string,
        "total": number,
        "code": whole,
        "at": time_of_json,
    }
    yield json_case("JSON, ten properties", properties, flat_rows())
    line = json_object(sku=string, count=whole, price=number)
    lines = {"type": "array", "items": line}
    customer = json_object(name=string, email=string)
    yield json_case(
        "JSON, orders", {"id": whole, "customer": customer, "lines": lines, "at": time_of_json}, orders()
    )


def rate(codec: ValueDecoder, values: pa.Array) -> float:
    """Return records per second of CPU time, in the best round."""
    decoded(codec, values)  # compiles kernels
    taken_s = []
    for _ in range(ROUNDS_COUNT):
        started_s = time.process_time()
        decoded(codec, values)
        taken_s.append(time.process_time() - started_s)
    return RECORDS_COUNT / min(taken_s)


class _Singly:
    """A decoder that cannot read columns."""

    def __init__(self, codec: ValueDecoder) -> None:
        self.label, self.columns, self.decode = codec.label, codec.columns, codec.decode


def main() -> None:
    print("| values, one core | singly, records/s | as columns, records/s | ratio |\n|---|---|---|---|")
    for text, codec, values in cases():
        column, single = pa.array(values, pa.binary()), _Singly(codec)
        assert decoded(codec, column)[1].null_count == len(values), "some value cannot be decoded"
        slow, fast = rate(single, column), rate(codec, column)
        print(f"| {text} | {slow:,.0f} | {fast:,.0f} | {fast / slow:.0f} |", flush=True)


if __name__ == "__main__":
    main()
