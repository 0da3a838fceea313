"""What a topic's configs say about its table."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import cast

from barnabas.config.definition import ConfigError, Value
from barnabas.config.keys import table as keys
from barnabas.config.values import parse_value
from barnabas.objects.location import Location, LocationError, parse_location
from barnabas.objects.settings import is_secret
from barnabas.tables.errors import TableError

_KEYS = {key.name: key for key in keys.TABLE_KEYS}


class TableFormat(Enum):
    DELTA = "delta"
    ICEBERG = "iceberg"


#: Characters of directories that the libraries of a format take for parts of URLs.
_REFUSED_CHARACTERS = {TableFormat.DELTA: "%", TableFormat.ICEBERG: "#%?"}


class Decoding(Enum):
    """How keys or values become columns."""

    BYTES = "bytes"
    STRING = "string"
    REGISTRY = "registry"


@dataclass(frozen=True)
class TableSettings:
    """The table of a topic."""

    topic: str
    format: TableFormat
    location: Location
    key_decoding: Decoding = Decoding.BYTES
    value_decoding: Decoding = Decoding.BYTES
    target_lag_ms: int = 60_000
    target_file_bytes: int = 128 * 1024 * 1024
    retention_ms: int | None = None  #: None keeps all rows
    history_ms: int = 7 * 24 * 3_600_000

    @property
    def keeps_bytes(self) -> bool:
        """Whether neither keys nor values are decoded."""
        return self.key_decoding is self.value_decoding is Decoding.BYTES

    @property
    def needs_registry(self) -> bool:
        return Decoding.REGISTRY in (self.key_decoding, self.value_decoding)


def table_settings(
    topic: str, configs: Mapping[str, str], base_location: Location | None = None
) -> TableSettings | None:
    """Return the table that a topic's configs ask for, or None.

    :param configs: The topic's configs; others than those of tables are ignored.
    :param base_location: Directory or URL of the tables whose configs name no location.
    :raises TableError: If a value is not valid, or there is no location.
    """
    try:
        values = {
            name: parse_value(key, configs[name]) if name in configs else key.default
            for name, key in _KEYS.items()
        }
    except ConfigError as error:
        raise TableError(str(error)) from None
    if values[keys.FORMAT] == "none":
        return None
    retention_ms = _number(values[keys.RETENTION_MS])
    kind = TableFormat(values[keys.FORMAT])
    location = _location(topic, str(values[keys.LOCATION]), base_location)
    _check_characters(topic, location, kind)
    return TableSettings(
        topic=topic,
        format=kind,
        location=location,
        key_decoding=Decoding(values[keys.KEY_FORMAT]),
        value_decoding=Decoding(values[keys.VALUE_FORMAT]),
        target_lag_ms=_number(values[keys.TARGET_LAG_MS]),
        target_file_bytes=_number(values[keys.TARGET_FILE_BYTES]),
        retention_ms=None if retention_ms < 0 else retention_ms,
        history_ms=_number(values[keys.HISTORY_MS]),
    )


def catalog_secrets(properties: Mapping[str, str]) -> list[str]:
    """Return those properties of Iceberg's catalog that must not be shown."""
    return [
        value for name, value in properties.items() if value and (is_secret(name) or name == "credential")
    ]


def _location(topic: str, configured: str, base: Location | None) -> Location:
    if not configured.strip() and base is not None:
        return base / topic
    if not configured.strip():
        raise TableError(
            f"topic {topic} has no {keys.LOCATION}; set it, or start the service with --location DIRECTORY"
        )
    try:
        location = parse_location(configured.strip())
    except LocationError as error:
        raise TableError(f"{keys.LOCATION} of topic {topic}: {error}") from None
    if isinstance(location, Path) and not location.is_absolute():
        raise TableError(
            f"{keys.LOCATION} of topic {topic} is '{location}'; it must be an absolute path or a URL such as "
            "s3://bucket/path"
        )
    return location


def _check_characters(topic: str, location: Location, kind: TableFormat) -> None:
    found = sorted(set(_REFUSED_CHARACTERS[kind]) & set(str(location)))
    if isinstance(location, Path) and found:
        raise TableError(
            f"the location of topic {topic}'s table is '{location}'; a {kind.value} table cannot be in a directory "
            f"with {' or '.join(found)} in its name"
        )


def _number(value: Value) -> int:
    return cast("int", value)
