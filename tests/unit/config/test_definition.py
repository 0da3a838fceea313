import pytest

from barnabas.config.definition import (
    ConfigError,
    ConfigKey,
    ConfigType,
    Effect,
    UpdateMode,
    quoted_value,
    table,
)


def key(name: str = "k", *, since: str = "4.1", internal: bool = False) -> ConfigKey:
    return ConfigKey(
        name, ConfigType.INT, 1, None, UpdateMode.READ_ONLY, Effect.NONE, "A key.", since, internal
    )


def test_an_error_has_the_key_the_value_and_valid_values() -> None:
    error = ConfigError("num.partitions", "x", "must be at least 1")
    assert str(error) == "Invalid value 'x' for num.partitions: must be at least 1"
    assert (error.key, error.value, error.reason) == ("num.partitions", "x", "must be at least 1")


def test_values_are_quoted_and_lists_joined() -> None:
    assert [quoted_value(None), quoted_value(3), quoted_value(("a", "b"))] == ["null", "'3'", "'a,b'"]


def test_config_types_have_the_numbers_of_the_protocol() -> None:
    assert [config_type.name for config_type in ConfigType] == [
        "UNKNOWN",
        "BOOLEAN",
        "STRING",
        "INT",
        "SHORT",
        "LONG",
        "DOUBLE",
        "LIST",
        "CLASS",
        "PASSWORD",
    ]


def test_internal_keys_and_keys_newer_than_4_3_are_not_listed() -> None:
    assert [k.listed for k in (key(), key(since="4.3"), key(since="4.4"), key(internal=True))] == [
        True,
        True,
        False,
        False,
    ]


def test_a_table_rejects_a_duplicate_key() -> None:
    assert list(table((key("a"),), (key("b"),))) == ["a", "b"]
    with pytest.raises(AssertionError, match="twice"):
        table((key("a"),), (key("a"),))
