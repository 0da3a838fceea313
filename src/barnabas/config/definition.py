"""The definition of a configuration key: name, type, default, bounds and its effect in Barnabas."""

import enum
from collections.abc import Mapping
from typing import NamedTuple, Protocol

#: A parsed value: lists are tuples of strings; passwords and classes are strings.
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
    """The scope of a dynamic change of a broker key (KIP-226)."""

    READ_ONLY = "R"
    PER_BROKER = "P"
    CLUSTER_WIDE = "C"


class Effect(enum.Enum):
    """The effect of a key in Barnabas: every key is parsed and validated, not every key has an effect."""

    HONOURED = "honoured"
    NONE = "accepted without effect"


class ConfigError(Exception):
    """A value is invalid for its key."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        """:param reason: Has parts of the value only in single quotes: `Variables` finds them there."""
        super().__init__(f"Invalid value {quoted_value(value)} for {key}: {reason}")
        self.key = key
        self.value = value
        self.reason = reason


class Validator(Protocol):
    """A constraint on parsed values."""

    def check(self, name: str, value: Value) -> None:
        """Raise `ConfigError` for an invalid value."""
        ...

    def describe(self) -> str:
        """Return the valid values as text for error messages and documentation."""
        ...


class Synonym(NamedTuple):
    """A broker key that provides the value of another key, multiplied by `factor` (60000: minutes to ms)."""

    name: str
    factor: int = 1


#: Begins the names of the keys that Apache Kafka does not have.
OWN_PREFIX = "barnabas."


class ConfigKey(NamedTuple):
    """A configuration key. `default` is a parsed value; `since` is the first Apache Kafka release with the key."""

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
        """Whether DescribeConfigs returns the key unset: internal keys and keys newer than Kafka 4.3 are left out."""
        return not self.internal and self.since != "4.4"

    @property
    def description(self) -> str:
        """The documentation in DescribeConfigs, with a note if the key has no effect."""
        if self.effect is Effect.HONOURED:
            return self.documentation
        return f"{self.documentation} {self.effect.value.capitalize()} in Barnabas."

    @property
    def sensitive(self) -> bool:
        """Whether the value is secret."""
        return self.type is ConfigType.PASSWORD


def table(*groups: tuple[ConfigKey, ...]) -> Mapping[str, ConfigKey]:
    """Return the keys of `groups` by name; duplicates are errors."""
    keys = {key.name: key for group in groups for key in group}
    assert len(keys) == sum(len(group) for group in groups), "a configuration key is defined twice"
    return keys


def quoted_value(value: object) -> str:
    """Return a value as quoted in error messages."""
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"'{','.join(value)}'"
    return f"'{value}'"
