"""Searches match the text that pages show."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.console.criteria import Criteria
from barnabas.console.records import SEARCHED_BYTES_MAX, WAYS, searched, shown, unformatted

ORDER = rb'{"size":"GR\u00d6SSE 7","Items":["tea","cake"],"id":1.10}'


def record(value: bytes | None = ORDER, key: bytes | None = b"Customer-7") -> ConsumedRecord:
    headers = (("Trace", b"abc"), ("none", None), ("kind", rb'{"a":"\u00fc"}'), ("x=y", b"\x00"))
    return ConsumedRecord("t", 0, 5, 1_000, key, value, headers)


@pytest.mark.parametrize(
    "value",
    [
        "GRÖSSE 7",
        "größe",
        '"tea", "cake"',
        '{ "size":',
        '"id": 1.10',
        'cake" ], "id"',
        "GRO\u0308SSE",
        "items",
    ],
)
def test_values_match_by_their_displayed_text(value: str) -> None:
    assert Criteria(value=value).matches(record())


@pytest.mark.parametrize("value", [r"\u00d6", '"tea","cake"', "coffee", '"id":1'])
def test_values_do_not_match_by_bytes_that_are_not_displayed(value: str) -> None:
    assert not Criteria(value=value).matches(record())
    assert Criteria(value=r"\u00d6", way="text").matches(record())


def test_text_copied_from_a_page_matches_its_record() -> None:
    field = shown(ORDER)
    assert Criteria(value=field.text).matches(record())
    assert Criteria(value=field.line, match_case=True).matches(record())


def test_case_sensitivity_is_optional() -> None:
    assert Criteria(key="cUSTOMER").matches(record())
    assert not Criteria(key="cUSTOMER", match_case=True).matches(record())
    assert Criteria(key="Customer", match_case=True).matches(record())
    assert not Criteria(value="items", match_case=True).matches(record())
    assert not Criteria(header="trace", match_case=True).matches(record())


@pytest.mark.parametrize(
    ("header", "is_found"),
    [
        ("trace", True),
        ("trace=B", True),
        ("none", True),
        ("=abc", True),
        ("=ü", True),
        ("kind=ü", True),
        ("trace=ü", False),
        ("tra", False),
        ("none=a", False),
    ],
)
def test_headers_match_by_name_and_text(header: str, is_found: bool) -> None:
    assert Criteria(header=header).matches(record()) is is_found


def test_a_record_must_contain_every_text() -> None:
    assert Criteria(key="customer", value="tea", header="trace").matches(record())
    assert not Criteria(key="other", value="tea").matches(record())
    assert not Criteria(key="x").matches(record(None, None))
    assert Criteria().matches(record(None, None))
    assert (bool(Criteria(way="hex")), bool(Criteria(header="h"))) == (False, True)


def test_bytes_match_in_hexadecimal_and_as_letters() -> None:
    assert Criteria(value="FF 41").matches(record(b"\x00\xffAB"))
    assert Criteria(value="·AB").matches(record(b"\x00\xffAB"))
    assert Criteria(value="7b 22", way="hex").matches(record())
    assert Criteria(value="A B", way="hex").matches(record(b"A  B"))


def test_a_field_that_is_only_partly_searched_is_reported() -> None:
    large = b"x" * (SEARCHED_BYTES_MAX + 1)
    assert Criteria(value="x").cuts(record(large))
    assert not Criteria(key="x").cuts(record(large))


TEXTS = st.text('aä\u0308 \n\t{}[]:,"\\1\u202eß')
JSON = st.recursive(st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@given(
    TEXTS.map(str.encode)
    | JSON.map(json.dumps).map(str.encode)
    | JSON.map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
    st.data(),
)
def test_any_displayed_text_matches(data: bytes, draw: st.DataObject) -> None:
    way = draw.draw(st.sampled_from(WAYS))
    text = searched(data, way)
    begin = draw.draw(st.integers(0, len(text)))
    part = text[begin : draw.draw(st.integers(begin, len(text)))]
    folds = part and part[0] != "\u0308" and not text[begin + len(part) :].startswith("\u0308")
    if part.strip() == part and folds:  # not a whole character
        assert Criteria(value=part, way=way).matches(record(data))


def test_records_are_formatted_only_if_they_may_match() -> None:
    assert unformatted(b'{"a": [1, "b c"]}') == '{"a":[1,"bc"]}'
    assert unformatted(rb'["\u00fc b"]') == '["\\u00fcb"]\n["üb"]'
    assert [unformatted(each) for each in (b"\xff", b"\x1b[0m")] == [None, None]
