import json

import pytest

from barnabas.cli.support.failures import CommandError
from barnabas.cli.support.formats import as_json, compile_format
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.registry.codecs.records import DecodedValue
from barnabas.registry.schemas import SchemaType

RECORD = ConsumedRecord("t", 3, 42, 1_700, b"key", b"value", (("a", b"1"), ("b", None)))
EMPTY = ConsumedRecord("t", 0, 0, -1, None, None, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%t %p %o %k %s %T\\n", b"t 3 42 key value 1700\n"),
        ("%K/%S", b"3/5"),
        ("%h", b"a=1,b=NULL"),
        ("%R%s", b"\0\0\0\5value"),
        ("100%% \\x41\\t\\\\", b"100% A\t\\"),
        ("", b""),
        ("grüße", "grüße".encode()),
    ],
)
def test_a_format_is_expanded_as_in_kcat(text: str, expected: bytes) -> None:
    assert compile_format(text)(RECORD) == expected


def test_null_is_printed_as_nothing_with_length_minus_one() -> None:
    assert compile_format("[%k][%s] %K %S")(EMPTY) == b"[][] -1 -1"


@pytest.mark.parametrize(
    ("text", "culprit"), [("%q", "'%q'"), ("50%", "'%'"), ("\\y", r"'\\y'"), ("\\x4", r"'\\x'")]
)
def test_an_unknown_placeholder_is_rejected(text: str, culprit: str) -> None:
    with pytest.raises(CommandError, match=f"{culprit} is not valid"):
        compile_format(text)


def test_json_has_one_line_with_every_field() -> None:
    line = as_json(RECORD)
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "topic": "t",
        "partition": 3,
        "offset": 42,
        "timestamp_ms": 1_700,
        "key": "key",
        "value": "value",
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
    }


def test_a_decoded_value_with_half_of_a_surrogate_pair_is_printed_with_its_escape() -> None:
    value = DecodedValue.of({"name": "\ud83dü"}, 7, SchemaType.JSON, 20)
    assert value == '{"name": "\\ud83dü"}'.encode()
    assert json.loads(as_json(EMPTY._replace(value=value)))["value"] == {"name": "\ud83dü"}


def test_json_distinguishes_null_from_empty_and_keeps_binary_data() -> None:
    fields = json.loads(as_json(EMPTY._replace(key=b"", value=None)))
    assert (fields["key"], fields["value"]) == ("", None)
    fields = json.loads(as_json(EMPTY._replace(value=b"\xff\x00")))
    assert fields["value_base64"] == "/wA="
    assert "value" not in fields
