"""What a configuration key is: its name, type, default, bounds and what it does in Barnabas."""

import enum
from collections.abc import Mapping
from typing import NamedTuple, Protocol

#: A parsed value: a list is a tuple of strings; a password and a class are strings.
Value = bool | int | float | str | tuple[str, ...] | None


class ConfigType(enum.IntEnum):
    """The `config_type` numbers of DescribeConfigs (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class UpdateMode(enum.Enum):
    """Where a broker key may be changed while the broker runs (KIP-226)."""

    READ_ONLY = "R"
    PER_BROKER = "P"
    CLUSTER_WIDE = "C"


class Effect(enum.Enum):
    """What Barnabas does with a key: every key is parsed and checked, not every key acts."""

    HONOURED = "honoured"
    NONE = "accepted without effect"


class ConfigError(Exception):
    """A value that a key does not allow."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {quoted_value(value)} for {key}: {reason}")
        self.key = key
        self.value = value
        self.reason = reason


class Validator(Protocol):
    """A bound on parsed values."""

    def check(self, name: str, value: Value) -> None:
        """Let `value` pass or raise `ConfigError`."""
        ...

    def describe(self) -> str:
        """What is valid, for people."""
        ...


class Synonym(NamedTuple):
    """A broker key that stands in for another key, counted in units of `factor` (60000: minutes for ms)."""

    name: str
    factor: int = 1


class ConfigKey(NamedTuple):
    """One key. `default` is a parsed value; `since` is the Apache Kafka release that brought the key."""

    name: str
    type: ConfigType
    default: Value
    validator: Validator | None
    mode: UpdateMode
    effect: Effect
    documentation: str
    since: str = "4.1"
    internal: bool = False
    synonyms: tuple[Synonym, ...] = ()

    @property
    def listed(self) -> bool:
        """Whether DescribeConfigs shows the key unset: not internal ones, nor those newer than Kafka 4.3."""
        return not self.internal and self.since != "4.4"

    @property
    def description(self) -> str:
        """What DescribeConfigs tells of the key: its documentation, and whether it acts here."""
        if self.effect is Effect.HONOURED:
            return self.documentation
        return f"{self.documentation} {self.effect.value.capitalize()} in Barnabas."

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.type is ConfigType.PASSWORD


def table(*groups: tuple[ConfigKey, ...]) -> Mapping[str, ConfigKey]:
    """The keys of `groups` by name; a name may come once only."""
    keys = {key.name: key for group in groups for key in group}
    assert len(keys) == sum(len(group) for group in groups), "a configuration key is defined twice"
    return keys


def quoted_value(value: object) -> str:
    """A value as error messages quote it."""
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"'{','.join(value)}'"
    return f"'{value}'"
