"""Protobuf to rows and back: messages of any shape, arbitrary bytes, and types that cannot be columns."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from barnabas.codecs import BinaryFormat, CodecSpec, ValueCodec
from barnabas.codecs.columns import decoded, encoded, row_type
from barnabas.codecs.errors import SchemaError
from barnabas.codecs.framing import Frame
from barnabas.codecs.protobuf import _descriptor, message_name

INT = st.integers(-(2**31), 2**31 - 1)
UINT = st.integers(0, 2**32 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
ULONG = st.integers(0, 2**64 - 1).map(Decimal)
FLOAT = st.floats(width=32, allow_nan=False).map(lambda value: value + 0.0)
DOUBLE = st.floats(allow_nan=False).map(lambda value: value + 0.0)
TEXT = st.text(max_size=8)
BYTES = st.binary(max_size=8)
MICROS = st.integers(-(2**55), 2**55)
#: Scalar types in proto files, and their types in rows.
SCALARS = {
    "double": DOUBLE,
    "float": FLOAT,
    "int64": LONG,
    "uint64": ULONG,
    "int32": INT,
    "fixed64": ULONG,
    "fixed32": UINT,
    "bool": st.booleans(),
    "string": TEXT,
    "bytes": BYTES,
    "uint32": UINT,
    "sfixed32": INT,
    "sfixed64": LONG,
    "sint32": INT,
    "sint64": LONG,
}
KEYS = ("int64", "uint64", "int32", "bool", "string", "sint32", "fixed32")
KNOWN = {
    "Timestamp": MICROS,
    "Duration": MICROS,
    "DoubleValue": DOUBLE,
    "FloatValue": FLOAT,
    "Int64Value": LONG,
    "UInt64Value": ULONG,
    "Int32Value": INT,
    "UInt32Value": UINT,
    "BoolValue": st.booleans(),
    "StringValue": TEXT,
    "BytesValue": BYTES,
}
IMPORTS = ("timestamp", "duration", "wrappers", "struct", "empty")


def file_of(syntax: str = "proto3") -> FileDescriptorProto:
    file = FileDescriptorProto(name="shop/order.proto", package="shop", syntax=syntax)
    file.dependency.extend(f"google/protobuf/{each}.proto" for each in IMPORTS)
    kind = file.enum_type.add(name="Kind")
    for number, name in enumerate(("SMALL", "LARGE")):
        kind.value.add(name=name, number=number)
    return file


def spec(
    file: FileDescriptorProto,
    name: str = "shop.Order",
    frame: Frame = Frame(),  # noqa: B008
) -> CodecSpec:
    schema = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    return CodecSpec(BinaryFormat.PROTOBUF, schema, name, frame)


def add_field(message: Any, name: str, kind: str, label: str = "OPTIONAL") -> Any:
    """Add a field of a scalar type, or of a type named in full."""
    field = message.field.add(
        name=name, number=len(message.field) + 1, label=Field.Label.Value(f"LABEL_{label}")
    )
    if kind in SCALARS:
        field.type = Field.Type.Value(f"TYPE_{kind.upper()}")
    else:
        field.type = Field.TYPE_ENUM if kind == ".shop.Kind" else Field.TYPE_MESSAGE
        field.type_name = kind
    return field


def add_optional(message: Any, name: str, kind: str) -> None:
    """Add an `optional` field of proto3: a oneof with one member."""
    field = add_field(message, name, kind)
    field.proto3_optional = True
    field.oneof_index = len(message.oneof_decl)
    message.oneof_decl.add(name=f"_{name}")


def add_map(message: Any, position: str, name: str, key: str, value: str) -> None:
    entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
    entry.options.map_entry = True
    add_field(entry, "key", key)
    add_field(entry, "value", value)
    add_field(message, name, f"{position}.{entry.name}", "REPEATED")


@st.composite
def kinds(draw: Any, message: Any, position: str, depth: int) -> tuple[str, st.SearchStrategy[Any]]:
    match draw(st.sampled_from(["scalar", "scalar", "enum", "known", *(["message"] if depth < 2 else [])])):
        case "enum":
            return ".shop.Kind", st.sampled_from(["SMALL", "LARGE"])
        case "known":
            name = draw(st.sampled_from(sorted(KNOWN)))
            return f".google.protobuf.{name}", KNOWN[name]
        case "message":
            inner = message.nested_type.add(name=f"M{len(message.nested_type)}")
            return f"{position}.{inner.name}", draw(contents(inner, f"{position}.{inner.name}", depth + 1))
    name = draw(st.sampled_from(sorted(SCALARS)))
    return name, SCALARS[name]


@st.composite
def contents(draw: Any, message: Any, position: str, depth: int = 0) -> Any:
    """Fill a message with fields; return the values in rows."""
    values: dict[str, st.SearchStrategy[Any]] = {}
    for index in range(draw(st.integers(1, 4))):
        name = f"f{index}"
        kind, found = draw(kinds(message, position, depth))
        match draw(st.sampled_from(["plain", "optional", "repeated", "map"])):
            case "optional":
                add_optional(message, name, kind)
                values[name] = st.none() | found
            case "repeated":
                add_field(message, name, kind, "REPEATED")
                values[name] = st.lists(found, max_size=3)
            case "map":
                key = draw(st.sampled_from(KEYS))
                add_map(message, position, name, key, kind)
                values[name] = st.dictionaries(SCALARS[key], found, max_size=3).map(
                    lambda got: sorted(got.items(), key=lambda pair: pair[0])
                )
            case _:
                add_field(message, name, kind)
                is_there = kind in SCALARS or kind == ".shop.Kind"
                values[name] = found if is_there else st.none() | found
    return st.fixed_dictionaries(values)


@st.composite
def tables(draw: Any) -> tuple[FileDescriptorProto, list[Any]]:
    file = file_of()
    rows = draw(contents(file.message_type.add(name="Order"), ".shop.Order"))
    return file, draw(st.lists(rows, min_size=1, max_size=4))


@given(tables(), st.sampled_from([Frame(), Frame(True, 9)]))
def test_rows_of_any_message_round_trip(table: tuple[FileDescriptorProto, list[Any]], frame: Frame) -> None:
    file, rows = table
    codec = spec(file, frame=frame).codec()
    given = pa.array(rows, row_type(codec))
    values, misfits = encoded(codec, given, [True] * len(rows))
    assert misfits.null_count == len(rows), misfits
    found, reasons = decoded(codec, values)
    assert reasons.null_count == len(rows), reasons
    assert found.equals(given)


@given(tables(), st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_are_a_row_or_have_a_reason(
    table: tuple[FileDescriptorProto, list[Any]], values: list[bytes]
) -> None:
    codec = spec(table[0]).codec()
    found, reasons = decoded(codec, pa.array(values, pa.binary()))
    assert len(found) == len(values)
    for row, reason in zip(found.is_valid().to_pylist(), reasons.to_pylist(), strict=True):
        assert row == (reason is None)


def order(fields: Callable[[Any], None], syntax: str = "proto3") -> FileDescriptorProto:
    file = file_of(syntax)
    fields(file.message_type.add(name="Order"))
    return file


def whole(message: Any) -> None:
    add_field(message, "id", "uint64")
    add_field(message, "count", "uint32")
    add_field(message, "kind", ".shop.Kind")
    add_optional(message, "note", "string")
    add_field(message, "at", ".google.protobuf.Timestamp")
    add_field(message, "took", ".google.protobuf.Duration")
    add_field(message, "weight", ".google.protobuf.DoubleValue")
    add_map(message, ".shop.Order", "prices", "string", "double")
    add_field(message, "tags", "string", "REPEATED")


def test_fields_are_columns_that_are_nullable_if_presence_is_tracked() -> None:
    codec = spec(order(whole)).codec()
    assert codec.label == "Protobuf of shop.Order"
    assert codec.columns == pa.schema(
        [
            pa.field("id", pa.decimal128(20, 0), False),
            pa.field("count", pa.int64(), False),
            pa.field("kind", pa.string(), False),
            pa.field("note", pa.string(), True),
            pa.field("at", pa.timestamp("us", "UTC"), True),
            pa.field("took", pa.duration("us"), True),
            pa.field("weight", pa.float64(), True),
            pa.field("prices", pa.map_(pa.string(), pa.field("value", pa.float64(), False)), False),
            pa.field("tags", pa.list_(pa.field("item", pa.string(), False)), False),
        ]
    )
    nullable = [field.name for field in codec.columns if field.nullable]
    nothing = {"id": Decimal(0), "count": 0, "kind": "SMALL", "prices": [], "tags": []}
    assert codec.decode(b"") == {**nothing, **dict.fromkeys(nullable)}


def made(codec_of: CodecSpec) -> Any:
    return message_factory.GetMessageClass(_descriptor(codec_of.schema, codec_of.message))()


def test_values_equal_those_of_the_protobuf_package() -> None:
    whole_spec = spec(order(whole))
    message = made(whole_spec)
    message.id, message.count, message.kind, message.note = 2**64 - 1, 2**32 - 1, 1, ""
    message.at.seconds, message.at.nanos = -1, 999_999_999
    message.took.seconds, message.took.nanos = -1, -1_999
    message.weight.value = 0.0
    message.prices["b"], message.prices["a"] = 2.5, 1.5
    message.tags.extend(["x", ""])
    row = whole_spec.codec().decode(message.SerializeToString())
    assert row == {
        "id": Decimal(2**64 - 1),
        "count": 2**32 - 1,
        "kind": "LARGE",
        "note": "",
        "at": -1,
        "took": -1_000_001,
        "weight": 0.0,
        "prices": [("a", 1.5), ("b", 2.5)],
        "tags": ["x", ""],
    }
    message.at.nanos, message.took.nanos = 999_999_000, -1_000
    again = type(message)()
    again.ParseFromString(whole_spec.codec().encode(row))
    assert again == message


def choice(message: Any) -> None:
    message.oneof_decl.add(name="paid")
    for name in ("card", "cash"):
        add_field(message, name, "string").oneof_index = 0


def test_at_most_one_field_of_a_oneof_is_not_null() -> None:
    codec = spec(order(choice)).codec()
    row = {"card": None, "cash": ""}
    assert codec.decode(codec.encode(row)) == row
    assert reason_for(codec, {"card": "1", "cash": "2"}) == (
        "the row cannot be Protobuf of shop.Order: card and cash are of one oneof, of which one at most may be not null"
    )


def reason_for(codec: ValueCodec, row: dict[str, Any]) -> str:
    values, misfits = encoded(codec, pa.array([row], row_type(codec)), [True])
    assert values.null_count == 1
    return str(misfits[0])


WHOLE_ROW = {"id": Decimal(1), "count": 1, "kind": "SMALL", "prices": [], "tags": []}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": Decimal(2**64)}, "id is "),
        ({"id": Decimal(-1)}, "id is "),
        ({"count": -1}, "count is -1: "),
        ({"count": None}, "count is null, which the schema does not allow"),
        ({"kind": "HUGE"}, "kind is 'HUGE'; it must be SMALL or LARGE"),
        ({"tags": ["a", None]}, "tags[1] is null, which"),
        ({"tags": None}, "tags is null, which"),
        ({"prices": [("a", None)]}, "prices[a] is null, which"),
    ],
)
def test_a_row_that_cannot_be_encoded_has_a_reason_with_the_field(change: dict[str, Any], says: str) -> None:
    reason = reason_for(spec(order(whole)).codec(), {**WHOLE_ROW, **change})
    assert reason.startswith(f"the row cannot be Protobuf of shop.Order: {says}")


def nested(message: Any) -> None:
    inner = message.nested_type.add(name="Inner")
    add_field(inner, "kind", ".shop.Kind", "REPEATED")
    add_field(message, "one", ".shop.Order.Inner")
    add_field(message, "many", ".shop.Order.Inner", "REPEATED")
    add_map(message, ".shop.Order", "named", "string", ".shop.Order.Inner")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"one": {"kind": ["SMALL", "HUGE"]}}, "one.kind[1] is 'HUGE'; it must be SMALL or LARGE"),
        ({"many": [{"kind": []}, None]}, "many[1] is null"),
        ({"many": [{"kind": ["x"]}]}, "many[0].kind[0] is 'x'"),
        ({"named": [("a", {"kind": None})]}, "named[a].kind is null"),
    ],
)
def test_a_nested_field_is_named_by_its_path(change: dict[str, Any], says: str) -> None:
    reason = reason_for(spec(order(nested)).codec(), {"one": None, "many": [], "named": [], **change})
    assert reason.startswith(f"the row cannot be Protobuf of shop.Order: {says}")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"\xff", "it cannot be parsed: "),
        (b"\x08", "it cannot be parsed: "),
        (b"\0\0\0\0\7\0", "; it begins like a value of a schema registry: set framing: confluent"),
        (b"\x18\x07", "shop.Kind in it has the number 7; the schema knows SMALL 0, LARGE 1"),
        (b"\x22\x01\xff", "it cannot be parsed: "),
        (b"\x2a\x06\x10\xff\xff\xff\xff\x0f", "a Timestamp in it has -1 nanos; 0 to 999999999 are valid"),
        (b"\x2a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "too large"),
    ],
)
def test_an_invalid_value_has_a_reason_and_others_pass(value: bytes, says: str) -> None:
    codec = spec(order(whole)).codec()
    found, reasons = decoded(codec, pa.array([b"", value, None, b""], pa.binary()))
    assert found.is_valid().to_pylist() == [True, False, False, True]
    assert str(reasons[1]).startswith("the value is not Protobuf of shop.Order: ")
    assert says in str(reasons[1])


def kinds_of_proto2(message: Any) -> None:
    add_field(message, "one", ".shop.Kind")
    add_field(message, "many", ".shop.Kind", "REPEATED")
    add_field(message, "packed", ".shop.Kind", "REPEATED").options.packed = True
    add_map(message, ".shop.Order", "named", "int32", ".shop.Kind")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (b"\x08\x07", 7),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", -1),
        (b"\x10\x01\x10\x07", 7),
        (b"\x1a\x02\x01\x07", 7),
        (b"\x22\x04\x08\x05\x10\x07", 7),
    ],
    ids=["field", "negative", "list", "packed list", "map"],
)
def test_a_number_that_an_enum_of_proto2_does_not_have_is_not_dropped(value: bytes, number: int) -> None:
    codec = spec(order(kinds_of_proto2, "proto2")).codec()
    _, reasons = decoded(codec, pa.array([value] * 100, pa.binary()))
    says = f"shop.Kind in it has the number {number}; the schema knows SMALL 0, LARGE 1"
    assert reasons.to_pylist() == [f"the value is not Protobuf of shop.Order: {says}"] * 100


@pytest.mark.parametrize("value", [b"\x08\x07\x08\x01", b"\x08\x01\x08\x07"])
def test_of_several_numbers_of_a_field_of_proto2_the_last_known_one_counts(value: bytes) -> None:
    """As in Protobuf; other fields with the number of an enum are unknown ones."""
    codec = spec(order(lambda message: add_field(message, "one", ".shop.Kind"), "proto2")).codec()
    assert codec.decode(value) == codec.decode(value + b"\x0a\x01\x00") == {"one": "LARGE"}


def test_required_fields_must_be_present() -> None:
    codec = spec(order(lambda message: add_field(message, "id", "int32", "REQUIRED"), "proto2")).codec()
    assert codec.decode(codec.encode({"id": 0})) == {"id": 0}
    _, reasons = decoded(codec, pa.array([b""], pa.binary()))
    assert str(reasons[0]).endswith("it has no id, which the schema requires")
    assert "id is null" in reason_for(codec, {"id": None})


def test_a_frame_selects_the_message_of_its_file() -> None:
    file = order(whole)
    other = file.message_type.add(name="Other")
    add_field(other, "a", "int32")
    for name in ("First", "Second"):
        add_field(other.nested_type.add(name=name), "a", "int32")
    frame = Frame(True, 1)
    first = spec(file, frame=frame).codec().encode(WHOLE_ROW)
    assert first.startswith(b"\0\0\0\0\1\0")
    second = spec(file, "shop.Other.Second", frame).codec()
    assert second.encode({"a": 5}) == b"\0\0\0\0\1\4\2\2\x08\x05"
    assert second.decode(b"\0\0\0\0\1\4\2\2\x08\x05") == {"a": 5}
    _, reasons = decoded(second, pa.array([first, b"\0\0\0\0\1\4\2"], pa.binary()))
    assert str(reasons[0]).endswith("it is message 0 of its file; shop.Other.Second is 1.1")
    assert "no indexes of a message" in str(reasons[1])


def test_the_messages_of_maps_count_among_others() -> None:
    file = order(whole)
    add_field(file.message_type[0].nested_type.add(name="Inner"), "a", "int32")
    inner = spec(file, "shop.Order.Inner", Frame(True, 1)).codec()
    assert inner.encode({"a": 5}) == b"\0\0\0\0\1\4\0\2\x08\x05"
    assert inner.decode(b"\0\0\0\0\1\4\0\2\x08\x05") == {"a": 5}
    linked = _descriptor(spec(file).schema, "shop.Order").file
    assert [message_name(linked, (0, index)) for index in range(3)] == [None, "shop.Order.Inner", None]


def of_kind(kind: str) -> FileDescriptorProto:
    return order(lambda message: add_field(message, "a", kind))


def twice(message: Any) -> None:
    add_field(message, "a", "int32").json_name = "x"
    add_field(message, "A", "int32").json_name = "y"


def imports_other() -> FileDescriptorProto:
    file = of_kind("int32")
    file.dependency.append("shop/other.proto")
    return file


@pytest.mark.parametrize(
    ("file", "name", "says"),
    [
        (of_kind(".shop.Order"), "shop.Order", "a: shop.Order contains itself"),
        (of_kind(".google.protobuf.Struct"), "shop.Order", "google.protobuf.Struct contains itself"),
        (
            of_kind(".google.protobuf.Empty"),
            "shop.Order",
            "a: the message google.protobuf.Empty has no fields",
        ),
        (of_kind(".shop.Nobody"), "shop.Order", "shop/order.proto is not a valid descriptor"),
        (of_kind("int32"), "Order", "there is no message Order; there are shop.Order"),
        (order(twice), "shop.Order", "A: the name occurs twice in its message"),
        (
            imports_other(),
            "shop.Order",
            "shop/order.proto imports shop/other.proto, which it lacks: use protoc",
        ),
    ],
)
def test_a_message_that_cannot_be_columns_is_rejected_with_the_field(
    file: FileDescriptorProto, name: str, says: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        spec(file, name).codec()
    assert says in str(caught.value)


def test_an_invalid_descriptor_set_is_rejected() -> None:
    with pytest.raises(
        SchemaError, match="it is not a valid descriptor set; create one with protoc --include_imports"
    ):
        CodecSpec(BinaryFormat.PROTOBUF, b"syntax = 'proto3';", "shop.Order", Frame()).codec()
