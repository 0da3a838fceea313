"""Columns of Protobuf messages are the rows that the codec of single values returns, whatever the bytes are."""

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

from barnabas.codecs.columns import encoded, row_type
from barnabas.codecs.framing import Frame
from barnabas.codecs.protobuf import ProtobufCodec
from unit.codecs.both_ways import check
from unit.codecs.test_protobuf import (
    add_field,
    add_map,
    add_optional,
    kinds_of_proto2,
    made,
    order,
    spec,
    tables,
    whole,
)

PLAIN = Frame()
FRAMES = [PLAIN, Frame(confluent=True, schema_id=9), Frame(confluent=True)]


def codec_of(file: FileDescriptorProto, frame: Frame = PLAIN) -> ProtobufCodec:
    codec = spec(file, frame=frame).codec()
    assert isinstance(codec, ProtobufCodec)
    return codec


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@st.composite
def fields(draw: Any, depth: int = 3) -> bytes:
    """Generate fields of any numbers and wire types."""
    number, wire_type = draw(st.integers(0, 6)), draw(st.sampled_from([0, 0, 1, 2, 2, 2, 3, 5]))
    tag = varint(number << 3 | wire_type)
    match wire_type:
        case 0:
            return tag + varint(draw(st.integers(0, 300) | st.integers(0, 2**64 - 1)))
        case 1:
            return tag + draw(st.binary(min_size=8, max_size=8))
        case 5:
            return tag + draw(st.binary(min_size=4, max_size=4))
        case 2:
            content = (
                b"".join(draw(st.lists(fields(depth - 1), max_size=3)))
                if depth
                else draw(st.binary(max_size=9))
            )
            return tag + varint(len(content)) + content
    return tag


@given(tables(), st.sampled_from(FRAMES), st.data())
def test_columns_are_the_rows_of_single_values(
    table: tuple[FileDescriptorProto, list[Any]], frame: Frame, data: Any
) -> None:
    """Some values are cut, changed, two messages, of random fields, or no values at all."""
    file, rows = table
    codec = codec_of(file, frame)
    header = frame.header().content + (b"\0" if frame.confluent else b"")
    plain = codec_of(file)
    bodies = encoded(plain, pa.array(rows, row_type(plain)), [True] * len(rows))[0].to_pylist()
    values: list[bytes | None] = [header + body for body in bodies]
    for index, value in enumerate(values):
        assert value is not None
        match data.draw(st.sampled_from(["keep", "keep", "cut", "change", "two", "more", "fields", "null"])):
            case "cut" if value:
                values[index] = value[: data.draw(st.integers(0, len(value) - 1))]
            case "change" if value:
                at = data.draw(st.integers(0, len(value) - 1))
                values[index] = value[:at] + bytes([data.draw(st.integers(0, 255))]) + value[at + 1 :]
            case "two":
                values[index] = value + (values[0] or b"")[len(header) :]
            case "more":
                values[index] = value + data.draw(fields())
            case "fields":
                values[index] = header + b"".join(data.draw(st.lists(fields(), max_size=5)))
            case "null":
                values[index] = None
    first = data.draw(st.integers(0, len(values)))
    check(codec, pa.array(values, pa.binary())[first:])
    check(codec, pa.array(values, pa.large_binary()))


@given(st.lists(st.lists(fields(depth=2), max_size=4).map(b"".join), max_size=20))
def test_columns_with_enums_of_proto2_are_the_rows_of_single_values(values: list[bytes]) -> None:
    check(codec_of(order(kinds_of_proto2, "proto2")), pa.array(values, pa.binary()))


def read_of(file: FileDescriptorProto, *values: bytes) -> list[int]:
    """Return the positions of the values that are read as columns."""
    read = check(codec_of(file), pa.array(values, pa.binary()))
    return [] if read is None else read.positions.tolist()


def messages(count: int) -> list[bytes]:
    values = []
    for number in range(count):
        message = made(spec(order(whole)))
        message.id, message.count, message.kind, message.note = (
            number,
            number % 7,
            number % 2,
            f"note {number}",
        )
        message.at.seconds, message.took.seconds, message.weight.value = number, -number, number / 2
        for tag in range(number % 30):
            message.prices[f"p{30 - tag}"] = tag
            message.tags.append(f"tag {tag}")
        values.append(message.SerializeToString())
    return values


def test_all_good_values_are_read_together() -> None:
    assert read_of(order(whole), *messages(200)) == list(range(200))


def test_damaged_values_between_good_ones_are_read_singly() -> None:
    values = messages(100)
    values[::9] = [value[:-1] for value in values[::9]]
    left = set(range(100)) - set(read_of(order(whole), *values))
    assert left <= set(range(0, 100, 9))
    assert len(left) > 5


def numbers(message: Any) -> None:
    add_field(message, "n", "int32", "REPEATED")


def test_repeated_numbers_may_be_packed_or_not_and_in_pieces() -> None:
    packed, single, negative = b"\x0a\x02\x01\x02", b"\x08\x03", b"\x08" + b"\xff" * 9 + b"\x01"
    assert read_of(order(numbers), packed + single, single + packed + packed, negative, b"\x0a\x00") == [
        0,
        1,
        2,
        3,
    ]


def test_unknown_fields_are_skipped_but_groups_are_read_singly() -> None:
    unknown = b"\x10\x01" + b"\x19" + b"8 bytes." + b"\x22\x02ab" + b"\x2d" + b"four"
    group = b"\x13\x08\x01\x14"
    assert read_of(order(numbers), unknown + b"\x08\x01" + unknown, b"\x08\x01" + group) == [0]


def test_entries_of_maps_with_unknown_fields_are_read_singly() -> None:
    def kinds(message: Any) -> None:
        add_map(message, ".shop.Order", "kinds", "int32", ".shop.Kind")

    entry, unknown = b"\x0a\x04\x08\x01\x10\x01", b"\x0a\x06\x08\x01\x10\x01\x18\x01"
    assert read_of(order(kinds), entry, unknown) == [0]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_a_key_of_a_map_that_is_left_out_is_the_default(syntax: str) -> None:
    """Some serializers leave it out; with null for it Arrow ends the process."""

    def prices(message: Any) -> None:
        add_map(message, ".shop.Order", "prices", "int32", "int32")

    file = order(prices, syntax)
    assert read_of(file, b"\x0a\x02\x10\x05", b"\x0a\x02\x08\x01", b"\x0a\x00") == [0, 1, 2]
    assert codec_of(file).decode(b"\x0a\x02\x10\x05") == {"prices": [(0, 5)]}


def test_a_message_that_comes_twice_is_merged_singly() -> None:
    def nested(message: Any) -> None:
        add_field(message, "at", ".google.protobuf.Timestamp")

    seconds, nanos = b"\x0a\x02\x08\x05", b"\x0a\x02\x10\x07"
    assert read_of(order(nested), seconds, seconds + nanos) == [0]


@pytest.mark.parametrize(
    ("fields_of", "value"),
    [
        (lambda message: add_field(message, "kind", ".shop.Kind"), b"\x08\x07"),
        (lambda message: add_field(message, "text", "string"), b"\x0a\x01\xff"),
        (
            lambda message: add_field(message, "at", ".google.protobuf.Timestamp"),
            b"\x0a\x06\x10\x80\x94\xeb\xdc\x03",
        ),
        (
            lambda message: add_field(message, "took", ".google.protobuf.Duration"),
            b"\x0a\x0d\x08\x01\x10" + b"\xff" * 9 + b"\x01",
        ),
        (
            lambda message: add_map(message, ".shop.Order", "prices", "string", "int32"),
            b"\x0a\x05\x0a\x01a\x10\x01" + b"\x0a\x05\x0a\x01a\x10\x02",
        ),
    ],
    ids=["unknown enum", "not UTF-8", "nanos", "signs", "equal keys"],
)
def test_contents_that_the_kernel_does_not_check_are_read_singly(fields_of: Any, value: bytes) -> None:
    assert read_of(order(fields_of), b"", value) == []


def test_a_value_with_two_members_of_a_oneof_is_read_singly() -> None:
    def choice(message: Any) -> None:
        message.oneof_decl.add(name="paid")
        for name in ("card", "cash"):
            add_field(message, name, "string").oneof_index = 0

    assert read_of(order(choice), b"\x0a\x01a", b"\x12\x01b") == [0, 1]
    assert read_of(order(choice), b"\x0a\x01a\x12\x01b") == []


def test_a_value_without_a_required_field_is_read_singly() -> None:
    def required(message: Any) -> None:
        add_field(message, "id", "int64", "REQUIRED")
        add_field(message, "kind", ".shop.Kind")

    file = order(required, "proto2")
    assert read_of(file, b"\x08\x01", b"\x08\x01\x10\x01") == [0, 1]
    assert read_of(file, b"\x10\x01") == []
    assert read_of(file, b"\x08\x01\x10\x09") == []  # proto2 takes an unknown enum for an unknown field


def test_a_schema_with_groups_is_read_singly() -> None:
    def group(message: Any) -> None:
        inner = message.nested_type.add(name="Part")
        add_field(inner, "x", "int32")
        field = add_field(message, "part", ".shop.Order.Part")
        field.type = Field.TYPE_GROUP

    value = pa.array([b"\x0b\x08\x01\x0c"], pa.binary())
    assert codec_of(order(group, "proto2")).read_column(value) is None


def test_missing_values_of_maps_and_lists_are_defaults_and_not_null() -> None:
    def nested(message: Any) -> None:
        inner = message.nested_type.add(name="Part")
        add_optional(inner, "x", "int32")
        add_field(inner, "y", "string")
        add_map(message, ".shop.Order", "parts", "string", ".shop.Order.Part")
        add_field(message, "list", ".shop.Order.Part", "REPEATED")

    assert read_of(order(nested), b"\x0a\x00", b"\x0a\x03\x0a\x01k", b"\x12\x00\x12\x02\x08\x01") == [0, 1, 2]
