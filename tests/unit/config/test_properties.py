import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b\nc d\r\ne\rf=", {"a": "b", "c": "d", "e": "", "f": ""}),
        ("  a  =  b c  ", {"a": "b c  "}),
        ("a = = b", {"a": "= b"}),
        ("# a=1\n ! b=2\n\n   \nc=3 # no comment", {"c": "3 # no comment"}),
        ("a=1,\\\n   2,\\\n   3", {"a": "1,2,3"}),
        ("a=1\\\n# 2", {"a": "1# 2"}),
        ("\\\na=1", {"a": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\t\\n\\r\\f\\z\\\\", {"a": "\t\n\r\fz\\"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=1\na=2", {"a": "2"}),
        ("", {}),
        ("=x", {"": "x"}),
    ],
)
def test_properties_are_parsed_as_in_java(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u"])
def test_an_invalid_character_escape_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties(text)


def written(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text)


TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.dictionaries(TEXTS, TEXTS))
def test_escaped_keys_and_values_round_trip(properties: dict[str, str]) -> None:
    text = "\n".join(f"{written(key)}={written(value)}" for key, value in properties.items())
    assert parse_properties(text) == properties
