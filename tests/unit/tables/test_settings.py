"""What a topic's configs say about its table."""

from pathlib import Path

import pytest

from barnabas.config.keys.table import TABLE_KEYS
from barnabas.objects.location import ObjectLocation
from barnabas.tables.errors import TableError
from barnabas.tables.settings import Decoding, TableFormat, TableSettings, table_settings

DELTA = {"barnabas.table.format": "delta"}


def test_a_topic_without_a_format_has_no_table() -> None:
    assert table_settings("t", {}) is None
    assert (
        table_settings("t", {"barnabas.table.format": "none", "barnabas.table.location": "relative"}) is None
    )


def test_every_config_is_a_setting() -> None:
    configs = {
        "barnabas.table.format": "iceberg",
        "barnabas.table.location": "s3://lake/orders/",
        "barnabas.table.key.format": "string",
        "barnabas.table.value.format": "registry",
        "barnabas.table.target.lag.ms": "500",
        "barnabas.table.target.file.bytes": "1000000",
        "barnabas.table.retention.ms": "86400000",
        "barnabas.table.history.ms": "3600000",
        "retention.ms": "1",
    }
    assert configs.keys() >= {key.name for key in TABLE_KEYS}
    assert table_settings("t", configs) == TableSettings(
        "t",
        TableFormat.ICEBERG,
        ObjectLocation("s3", "lake", "orders"),
        Decoding.STRING,
        Decoding.REGISTRY,
        500,
        1_000_000,
        86_400_000,
        3_600_000,
    )


def test_the_defaults_are_those_of_the_keys() -> None:
    settings = table_settings("t", {**DELTA, "barnabas.table.location": "/data/t"})
    assert settings == TableSettings("t", TableFormat.DELTA, Path("/data/t"))


@pytest.mark.parametrize(
    ("base", "location"),
    [
        (Path("/lake"), Path("/lake/orders")),
        (ObjectLocation("s3", "lake", "x"), ObjectLocation("s3", "lake", "x/orders")),
    ],
)
def test_the_location_is_below_that_of_the_service_by_default(
    base: Path | ObjectLocation, location: Path | ObjectLocation
) -> None:
    settings = table_settings("orders", DELTA, base)
    assert settings is not None
    assert settings.location == location


@pytest.mark.parametrize(
    ("configs", "problem"),
    [
        (
            {},
            "topic t has no barnabas.table.location; set it, or start the service with --location DIRECTORY",
        ),
        ({"barnabas.table.location": "lake/t"}, "is 'lake/t'; it must be an absolute path or a URL"),
        ({"barnabas.table.location": "ftp://h/t"}, "must be a path, or begin with s3://"),
        ({"barnabas.table.location": "s3://user:secret@lake/t"}, "must not contain credentials"),
        ({"barnabas.table.value.format": "xml"}, "Invalid value 'xml' for barnabas.table.value.format"),
        ({"barnabas.table.target.lag.ms": "1"}, "must be at least 100"),
    ],
)
def test_a_value_that_is_not_valid_is_named(configs: dict[str, str], problem: str) -> None:
    with pytest.raises(TableError) as caught:
        table_settings("t", {**DELTA, **configs})
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("kind", "name"), [("delta", "a%20b"), ("iceberg", "a#b"), ("iceberg", "a?b")])
def test_directories_that_the_libraries_cannot_name_are_refused(kind: str, name: str) -> None:
    with pytest.raises(TableError, match=f"a {kind} table cannot be in a directory with . in its name"):
        table_settings("t", {"barnabas.table.format": kind}, Path("/tables", name))
