import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.definition import (
    ConfigError,
    ConfigKey,
    ConfigType,
    Effect,
    UpdateMode,
    Validator,
    Value,
)
from barnabas.config.validators import ListOf, Range
from barnabas.config.values import format_value, parse_type, parse_value

INTEGERS = [(ConfigType.SHORT, 16), (ConfigType.INT, 32), (ConfigType.LONG, 64)]


def key(config_type: ConfigType, validator: Validator | None = None) -> ConfigKey:
    return ConfigKey("k", config_type, None, validator, UpdateMode.READ_ONLY, Effect.NONE, "A key.")


@pytest.mark.parametrize(
    ("config_type", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "False", False),
        (ConfigType.INT, "\t+5\n", 5),
        (ConfigType.INT, "-0", 0),
        (ConfigType.LONG, "٣", 3),
        (ConfigType.STRING, "\x00 a b \x1f", "a b"),
        (ConfigType.PASSWORD, " secret ", "secret"),
        (ConfigType.CLASS, " a.B ", "a.B"),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.DOUBLE, ".5f", 0.5),
        (ConfigType.DOUBLE, "-Infinity", -math.inf),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, " a , b,\tc ", ("a", "b", "c")),
        (ConfigType.LIST, "a,,b,", ("a", "", "b", "")),
    ],
)
def test_text_is_parsed_as_in_kafka(config_type: ConfigType, text: str, value: Value) -> None:
    assert parse_type("k", config_type, text) == value


@pytest.mark.parametrize(
    ("config_type", "text", "valid"),
    [
        (ConfigType.BOOLEAN, "yes", "true or false"),
        (ConfigType.BOOLEAN, "", "true or false"),
        (ConfigType.INT, "", "32 bits"),
        (ConfigType.INT, "1.0", "32 bits"),
        (ConfigType.INT, "1_000", "32 bits"),
        (ConfigType.INT, "0x10", "32 bits"),
        (ConfigType.INT, "--1", "32 bits"),
        (ConfigType.INT, "+", "32 bits"),
        (ConfigType.INT, "²", "32 bits"),
        (ConfigType.LONG, "1 2", "64 bits"),
        (ConfigType.LONG, "9" * 5_000, "64 bits"),
        (ConfigType.LONG, f"-{'0' * 5_000}", "64 bits"),
        (ConfigType.DOUBLE, "nan", "a number"),
        (ConfigType.DOUBLE, "1_0", "a number"),
        (ConfigType.DOUBLE, "", "a number"),
        (ConfigType.DOUBLE, "1e", "a number"),
    ],
)
def test_text_of_another_type_is_rejected(config_type: ConfigType, text: str, valid: str) -> None:
    with pytest.raises(ConfigError, match=valid) as caught:
        parse_type("some.key", config_type, text)
    assert (caught.value.key, caught.value.value) == ("some.key", text.strip())


@pytest.mark.parametrize(("config_type", "bits"), INTEGERS)
def test_integers_are_limited_to_their_width(config_type: ConfigType, bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert [parse_type("k", config_type, str(edge)) for edge in (low, high)] == [low, high]
    for outside in (low - 1, high + 1):
        with pytest.raises(ConfigError, match=f"from {low} to {high}"):
            parse_type("k", config_type, str(outside))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-2.5e-9, "-2.5E-9"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        ("text", "text"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
    ],
)
def test_values_are_formatted_as_in_java(value: Value, text: str | None) -> None:
    assert format_value(value) == text


@given(st.floats(allow_nan=False))
def test_a_formatted_double_parses_back_to_itself(number: float) -> None:
    assert parse_type("k", ConfigType.DOUBLE, format_value(number) or "") == number


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_formatted_long_parses_back_to_itself(number: int) -> None:
    assert parse_type("k", ConfigType.LONG, format_value(number) or "") == number


@given(st.booleans())
def test_a_formatted_boolean_parses_back_to_itself(flag: bool) -> None:
    assert parse_type("k", ConfigType.BOOLEAN, format_value(flag) or "") is flag


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters=","), min_size=1).map(str.strip)))
def test_a_parsed_list_formats_and_parses_back_to_itself(items: list[str]) -> None:
    parsed = parse_type("k", ConfigType.LIST, ",".join(items))
    assert parse_type("k", ConfigType.LIST, format_value(parsed) or "") == parsed


@given(st.text(), st.sampled_from(ConfigType))
def test_any_text_is_parsed_or_an_error_with_the_keys_name(text: str, config_type: ConfigType) -> None:
    refused = ""
    try:
        parse_type("k", config_type, text)
    except ConfigError as error:
        refused = error.key
    assert refused in ("", "k")


def test_the_bounds_of_the_key_apply() -> None:
    assert parse_value(key(ConfigType.INT, Range(1, 9)), "9") == 9
    with pytest.raises(ConfigError, match="from 1 to 9"):
        parse_value(key(ConfigType.INT, Range(1, 9)), "10")


def test_null_may_be_rejected_by_bounds() -> None:
    assert parse_value(key(ConfigType.STRING), None) is None
    with pytest.raises(ConfigError, match="at least 0"):
        parse_value(key(ConfigType.INT, Range(0)), None)


def test_duplicate_entries_of_a_bounded_list_count_once() -> None:
    assert parse_value(key(ConfigType.LIST, ListOf(("a", "b"))), "b,a,b") == ("b", "a")
