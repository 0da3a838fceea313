"""Columns of JSON are the rows that the codec of single values returns, whatever the bytes are."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.codecs.framing import Frame
from barnabas.codecs.json_schema import JsonSchemaDecoder
from barnabas.registry.json_schema.schema import JsonSchema
from unit.codecs.both_ways import check

FRAMES = [Frame(), Frame(confluent=True, schema_id=7), Frame(confluent=True)]
#: Types, and texts of values that fit or nearly do.
KINDS: list[tuple[Any, list[str]]] = [
    ({"type": "boolean"}, ["true", "false"]),
    (
        {"type": "integer"},
        ["0", "-0", "17", "9223372036854775807", "9223372036854775808", "1.0", "1e3", "01"],
    ),
    (
        {"type": "number"},
        ["0", "-0.0", "1.5", "1e-7", "1e308", "1e309", "NaN", "-Infinity", "12345678901234567890"],
    ),
    (
        {"type": "string"},
        ['""', '"Info, NaN"', r'"\u00e9\n"', r'"\ud800"', r'"\ud83d\ude00"', '"a\nb"', '"\u20ac"', "7"],
    ),
    ({"type": "string", "format": "date"}, ['"2026-05-17"', '"2026-02-30"', '"0001-01-01"', '"2026-5-1"']),
    (
        {"type": "string", "format": "date-time"},
        ['"2026-05-17T10:30:00Z"', '"2026-05-17t10:30:00.1234567+02:00"', '"2026-05-17T10:30:00"'],
    ),
]
#: Texts instead of values, or of properties that the schema does not know.
ODD = ["null", "[]", "{}", "[[1, null], {}]", '{"f0": 1}', "NaN", "tru", "", "1 2"]
SPACES = st.sampled_from(["", " ", "\n", "\t\r"])


@st.composite
def types(draw: Any, depth: int = 2) -> tuple[Any, st.SearchStrategy[str]]:
    """Generate a schema, and a strategy for the JSON of its values."""
    odd = st.sampled_from(ODD)
    match draw(st.sampled_from(["value"] * 3 + (["array", "object"] if depth else []))):
        case "array":
            items, texts = draw(types(depth - 1))
            lists = st.lists(texts, max_size=4).map(lambda parts: f"[{', '.join(parts)}]")
            return {"type": "array", "items": items}, weighted(draw, lists, odd)
        case "object":
            return draw(objects(depth - 1))
    contents, texts = draw(st.sampled_from(KINDS))
    if draw(st.booleans()):
        contents = {**contents, "type": [contents["type"], "null"]}
    good = len(texts) // 2 or 1
    return contents, weighted(draw, st.sampled_from(texts[:good]), st.sampled_from([*texts, *ODD]))


def weighted(
    draw: Any, often: st.SearchStrategy[str], seldom: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    return st.integers(0, 40).flatmap(lambda number: often if number else seldom)


@st.composite
def objects(draw: Any, depth: int = 2) -> tuple[Any, st.SearchStrategy[str]]:
    properties = {f"f{index}": draw(types(depth)) for index in range(draw(st.integers(1, 4)))}
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    texts: dict[str, st.SearchStrategy[str]] = {name: texts for name, (_, texts) in properties.items()}
    texts |= {"more": st.sampled_from(['"x"', *ODD[:5]]), "F0": st.just("1")}
    names = st.lists(
        st.sampled_from(sorted(texts)), max_size=6, unique=draw(st.sampled_from([True, True, False]))
    )

    @st.composite
    def members(draw_text: Any) -> str:
        some = draw_text(names)
        every = [
            *required,
            *(name for name in some if name not in required or not draw_text(st.integers(0, 9))),
        ]
        return f"{{{','.join(json.dumps(name) + ':' + draw_text(texts[name]) for name in every)}}}"

    schema = {"type": "object", "properties": {name: contents for name, (contents, _) in properties.items()}}
    return {**schema, "required": required}, members()


def decoder(schema: Any, frame: Frame) -> JsonSchemaDecoder:
    return JsonSchemaDecoder(JsonSchema.parse(json.dumps(schema), {}, is_new=False), frame)


@given(objects(), st.sampled_from(FRAMES), st.data())
def test_columns_are_the_rows_of_single_values(
    generated: tuple[Any, st.SearchStrategy[str]], frame: Frame, data: Any
) -> None:
    schema, texts = generated
    header = frame.header().content
    values: list[bytes | None] = []
    for text in data.draw(st.lists(texts, max_size=10)):
        value: bytes | None = header + text.encode()
        match data.draw(st.sampled_from(["keep"] * 9 + ["cut", "two", "space", "change", "null"])):
            case "cut":
                value = value[: data.draw(st.integers(0, len(value)))] if value else value
            case "two":
                value = header + text.encode() + b"\n" + text.encode()
            case "space":
                value = header + f"{data.draw(SPACES)}{text}{data.draw(SPACES)}".encode()
            case "change" if value:
                at = data.draw(st.integers(0, len(value) - 1))
                value = value[:at] + bytes([data.draw(st.integers(0, 255))]) + value[at + 1 :]
            case "null":
                value = None
        values.append(value)
    first = data.draw(st.integers(0, len(values)))
    codec = decoder(schema, frame)
    check(codec, pa.array(values, pa.binary())[first:])
    check(codec, pa.array(values, pa.large_binary()))


ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
    },
    "required": ["id"],
}


def order(number: int) -> bytes:
    lines = [{"sku": f"s{index}", "unknown": [1]} for index in range(number % 4)]
    return json.dumps({"id": number, "at": f"2026-05-17T10:30:{number % 60:02}Z", "lines": lines}).encode()


def test_all_good_values_are_read_together() -> None:
    read = check(decoder(ORDER, Frame()), pa.array(map(order, range(500)), pa.binary()))
    assert read is not None
    assert list(read.positions) == list(range(500))


@pytest.mark.parametrize(
    "bad",
    [
        b'{"id": "1"}',
        b'{"id": 1}{"id": 2}',
        b'{"id": 1, "id": 2}',
        b'{"id": NaN}',
        b'{"id": 1, "unknown": -Infinity}',
        b'{"at": "2026-05-17T10:30:00Z"}',
        b'{"id": 1, "at": "yesterday"}',
        b'{"id": 1, "at": "\xff"}',
        b'{"id": 1, "lines": [',
        b'{"id": 1, "unknown": ' + b"[" * 600 + b"]" * 600 + b"}",
        b"[]",
        b"",
    ],
)
def test_a_value_that_does_not_fit_leaves_most_others_to_columns(bad: bytes) -> None:
    values = [order(number) for number in range(5_000)]
    values[333] = bad
    read = check(decoder(ORDER, Frame()), pa.array(values, pa.binary()))
    assert read is not None
    assert len(read.positions) >= 3_000
    assert 333 not in read.positions


def test_a_schema_with_properties_of_any_type_is_read_singly() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}}
    assert decoder(schema, Frame()).read_column(pa.array([b'{"b": 1}'], pa.binary())) is None
