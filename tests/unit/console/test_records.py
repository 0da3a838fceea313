"""Display of record bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records import (
    SEARCHED_BYTES_MAX,
    SHOWN_CHARACTERS_MAX,
    WAYS,
    indented,
    printable,
    searched,
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
def test_a_fields_format_is_detected(data: bytes | None, kind: str) -> None:
    assert shown(data).kind == kind


def test_json_is_indented_and_otherwise_unchanged() -> None:
    text = '{"a":1.10,"b":[1e400,"x,\\"y:{"],"c":{},"d":[]}'
    assert shown(text.encode()).text == (
        '{\n  "a": 1.10,\n  "b": [\n    1e400,\n    "x,\\"y:{"\n  ],\n  "c": {},\n  "d": []\n}'
    )


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"Gr\u00f6\u00DFe", "Größe"),
        (r"\ud83d\ude00!", "\U0001f600!"),
        (r"a\/b", "a/b"),
        (r"\\u00f6", r"\\u00f6"),
        (r"\u0022 \u005c \u000a \u202e", r"\" \\ \n \u202e"),
        (r"\ud800", r"\ud800"),
    ],
)
def test_escapes_in_json_are_shown_as_characters_if_printable(written: str, text: str) -> None:
    assert shown(f'["{written}"]'.encode()).text == f'[\n  "{text}"\n]'
    assert shown(f'["{written}"]'.encode(), "text").text == f'["{written}"]'


@given(JSON)
def test_indented_json_is_equal(value: object) -> None:
    assert json.loads(indented(json.dumps(value))) == value


def test_json_that_is_too_deep_to_indent_is_text() -> None:
    assert shown(b"[" * 200 + b"]" * 200).kind == "text"
    assert shown(b"[" * 100_000 + b"]" * 100_000).kind == "text"


def test_only_displayed_json_is_indented() -> None:
    many = json.dumps(list(range(20_000)))
    assert len(indented(many, 1_000)) < 1_020
    found = shown(many.encode())
    assert (found.kind, found.is_cut, len(found.text)) == ("json", True, SHOWN_CHARACTERS_MAX)


def test_unprintable_characters_are_escaped() -> None:
    assert printable("a\u202eb\x1b[0m\n\tc") == "a\\u202eb\\x1b[0m\n\tc"


def test_bytes_are_shown_in_hexadecimal_and_as_letters() -> None:
    assert shown(b"\x00AB\xff").text == f"000000  {'00 41 42 ff':<48} ·AB·"
    assert shown(b"AB", "hex").line == "41 42"


def test_bytes_shown_as_text_have_marks_for_invalid_characters() -> None:
    assert shown(b"a\xffb", "text").text == "a\ufffdb"
    assert shown(b"a\x00", "text").text == "a\\x00"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_large_fields_are_truncated(data: bytes, way: str) -> None:
    field = shown(data, way)
    assert len(field.text) <= SHOWN_CHARACTERS_MAX
    assert field.is_cut
    assert field.size_bytes == len(data)
    assert len(field.line) <= 160


@given(st.binary(), st.sampled_from(WAYS))
def test_any_bytes_can_be_displayed(data: bytes, way: str) -> None:
    field = shown(data, way)
    assert all(each in "\n\t" or each.isprintable() for each in field.text)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_a_large_field_is_searched_within_and_after_its_displayed_part(data: bytes, way: str) -> None:
    field = shown(data, way)
    text = searched(data, way)
    assert field.text in text or field.line in text
    assert len(text) > SHOWN_CHARACTERS_MAX


@given(st.binary() | JSON.map(json.dumps).map(str.encode), st.sampled_from(WAYS))
def test_a_field_is_searched_as_displayed(data: bytes, way: str) -> None:
    field = shown(data, way)
    if field.kind != "hex":
        assert searched(data, way) == " ".join(field.text.split())
    assert field.line in searched(data, way)


def test_bytes_are_searched_across_lines_of_the_page() -> None:
    text = searched(bytes(range(64, 96)), "hex")
    assert "4e 4f 50 51" in text
    assert "NOPQ" in text


def test_json_is_searched_as_a_whole_although_its_start_is_displayed() -> None:
    data = json.dumps([*range(20_000), "the end"]).encode()
    assert searched(data).endswith('19999, "the end" ]')
    assert '"the end"' not in shown(data).text


def test_only_the_start_of_a_very_large_field_is_searched() -> None:
    data = b"x" * SEARCHED_BYTES_MAX + b"beyond"
    assert searched(data) == "x" * SEARCHED_BYTES_MAX
