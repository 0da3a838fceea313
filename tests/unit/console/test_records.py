"""Bytes of records as people can look at them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records import (
    SHOWN_CHARACTERS_MAX,
    WAYS,
    indented,
    matches,
    printable,
    shown,
)

LARGE = {"text": b"x" * 1_000_000, "bytes": b"\xff" * 1_000_000, "snow": "☃".encode() * 500_000}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (None, "null"),
        (b"", "empty"),
        (b"hello", "text"),
        ("Größe ☃".encode(), "text"),
        (b'{"a": [1, {}]}', "json"),
        (b"[]", "json"),
        (b'{"a": ', "text"),
        (b"12", "text"),
        (b"a\x00b", "hex"),
        (b"\xff\xfe", "hex"),
    ],
)
def test_a_field_is_shown_as_what_it_looks_like(data: bytes | None, kind: str) -> None:
    assert shown(data).kind == kind


def test_json_is_indented_and_not_changed_otherwise() -> None:
    text = '{"a":1.10,"b":[1e400,"x,\\"y\\u0041:{"],"c":{},"d":[]}'
    assert shown(text.encode()).text == (
        '{\n  "a": 1.10,\n  "b": [\n    1e400,\n    "x,\\"y\\u0041:{"\n  ],\n  "c": {},\n  "d": []\n}'
    )


@given(JSON)
def test_indented_json_means_the_same(value: object) -> None:
    assert json.loads(indented(json.dumps(value))) == value


def test_json_too_deep_to_be_indented_is_text() -> None:
    assert shown(b"[" * 200 + b"]" * 200).kind == "text"
    assert shown(b"[" * 100_000 + b"]" * 100_000).kind == "text"


def test_no_more_json_is_indented_than_is_shown() -> None:
    many = json.dumps(list(range(20_000)))
    assert len(indented(many, 1_000)) < 1_020
    found = shown(many.encode())
    assert (found.kind, found.is_cut, len(found.text)) == ("json", True, SHOWN_CHARACTERS_MAX)


def test_what_cannot_be_seen_is_written_out() -> None:
    assert printable("a\u202eb\x1b[0m\n\tc") == "a\\u202eb\\x1b[0m\n\tc"


def test_bytes_are_told_in_hexadecimal_beside_what_letters_they_are() -> None:
    assert shown(b"\x00AB\xff").text == f"000000  {'00 41 42 ff':<48} ·AB·"
    assert shown(b"AB", "hex").line == "41 42"


def test_bytes_shown_as_text_have_marks_for_what_is_none() -> None:
    assert shown(b"a\xffb", "text").text == "a\ufffdb"
    assert shown(b"a\x00", "text").text == "a\\x00"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_what_is_large_is_cut(data: bytes, way: str) -> None:
    field = shown(data, way)
    assert len(field.text) <= SHOWN_CHARACTERS_MAX
    assert field.is_cut
    assert field.size_bytes == len(data)
    assert len(field.line) <= 160


@given(st.binary(), st.sampled_from(WAYS))
def test_whatever_it_is_it_can_be_shown(data: bytes, way: str) -> None:
    field = shown(data, way)
    assert all(each in "\n\t" or each.isprintable() for each in field.text)


def test_records_are_found_by_what_key_value_and_headers_contain() -> None:
    record = (b"customer-7", '{"größe": 1}'.encode(), [("trace", b"abc"), ("none", None)])
    assert matches(*record)
    assert matches(*record, wanted_key="tomer", wanted_value="größe", wanted_header="trace")
    assert matches(*record, wanted_header="trace=b")
    assert matches(*record, wanted_header="none")
    assert not matches(*record, wanted_key="x")
    assert not matches(*record, wanted_value="x")
    assert not matches(*record, wanted_header="trace=x")
    assert not matches(*record, wanted_header="tra")
    assert not matches(None, None, [], wanted_key="x")
