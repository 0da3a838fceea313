"""Constraints on parsed values, as small immutable objects that describe what is valid."""

import re
from typing import NamedTuple

from barnabas.base.hosts import is_network
from barnabas.config.definition import ConfigError, Value


class Range(NamedTuple):
    """A number from `low` to `high`, both included; None for no bound."""

    low: float | None = None
    high: float | None = None

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When the number is missing or out of bounds."""
        if (
            not isinstance(value, int | float)
            or (self.low is not None and value < self.low)
            or (self.high is not None and value > self.high)
        ):
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        if self.high is None:
            return f"at least {self.low}"
        return f"from {self.low} to {self.high}"


class GzipLevel(NamedTuple):
    """A compression level of zlib: 1 to 9, or -1 for its default."""

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When zlib has no such level."""
        if value != -1 and (not isinstance(value, int) or not 1 <= value <= 9):
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return "from 1 to 9, or -1"


class OneOf(NamedTuple):
    """One of the given words, case-sensitive."""

    words: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: For any other value."""
        if value not in self.words:
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return f"one of {', '.join(self.words)}"


class OneOfIgnoreCase(NamedTuple):
    """One of the given words, in any case."""

    words: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: For any other value."""
        if not isinstance(value, str) or value.upper() not in (word.upper() for word in self.words):
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return f"one of {', '.join(self.words)} (in any case)"


class NonEmpty(NamedTuple):
    """Text with at least one character; None is accepted."""

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When the text is empty."""
        if value == "":
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return "a string that is not empty"


class NonNull(NamedTuple):
    """Any value but None."""

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When there is no value."""
        if value is None:
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return "a string, possibly empty"


class ListOf(NamedTuple):
    """A list without empty entries; of `words`, or of anything if there are none."""

    words: tuple[str, ...] = ()
    empty_ok: bool = True
    null_ok: bool = False

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When the list is missing, empty or has another entry."""
        if value is None and self.null_ok:
            return
        problem = self._problem(value) if isinstance(value, tuple) else "a list is required"
        if problem:
            raise ConfigError(name, value, f"{problem}; must be {self.describe()}")

    def _problem(self, items: tuple[str, ...]) -> str:
        if not items:
            return "" if self.empty_ok else "the list is empty"
        foreign = [item for item in items if not item or (self.words and item not in self.words)]
        if not foreign:
            return ""
        return f"'{foreign[0]}' is not valid" if foreign[0] else "an entry is empty"

    def describe(self) -> str:
        what = f"a list of {', '.join(self.words)}" if self.words else "a list"
        return what if self.empty_ok else f"{what}, not empty"


class Addresses(NamedTuple):
    """A list of `host:port` entries, which may be empty."""

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When an entry is malformed."""
        if not isinstance(value, tuple) or not all(map(_is_address, value)):
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return "a list of {host}:{port}"


class Networks(NamedTuple):
    """A list of IP addresses and networks, which may be empty."""

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When an entry is neither."""
        if not isinstance(value, tuple) or not all(map(is_network, value)):
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return "a list of addresses (10.1.2.3) or networks (10.1.0.0/16)"


class QuorumVoters(NamedTuple):
    """The KRaft voters as `id@host:port` entries; empty if bootstrap servers are used."""

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When an entry is malformed."""
        if not isinstance(value, tuple) or not all(map(_is_voter, value)):
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return "a list of {id}@{host}:{port}"


def _is_address(entry: str) -> bool:
    host, _, port = entry.rpartition(":")
    return bool(host) and port.isdecimal()


def _is_voter(entry: str) -> bool:
    node_id, at, address = entry.partition("@")
    return bool(at) and node_id.isdecimal() and _is_address(address)


class ThrottledReplicas(NamedTuple):
    """`*` for every replica, or `partition:broker` pairs (KIP-73)."""

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When an entry is neither."""
        entries = value if isinstance(value, tuple) else ("a list is required",)
        if "".join(entries) != "*" and not all(_is_replica(entry.strip()) for entry in entries):
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return "* or a list of {partition}:{broker}"


def _is_replica(entry: str) -> bool:
    partition, _, broker = entry.partition(":")
    return not entry or (partition.isdecimal() and broker.isdecimal())


class OffsetReset(NamedTuple):
    """The start of a share group: `earliest`, `latest` or `by_duration:` with an ISO 8601 duration."""

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: For any other value."""
        if value not in ("earliest", "latest") and not _is_duration_reset(str(value)):
            raise ConfigError(name, value, f"must be {self.describe()}")

    def describe(self) -> str:
        return "earliest, latest or by_duration:PnDTnHnMn.nS"


def _is_duration_reset(text: str) -> bool:
    prefix, _, duration = text.partition(":")
    return prefix == "by_duration" and duration[:1] in ("P", "p") and any(map(str.isdecimal, duration))


class MetricMatch(NamedTuple):
    """The clients of a metrics subscription: `attribute=regular expression` entries (KIP-714)."""

    attributes: tuple[str, ...]

    def check(self, name: str, value: Value) -> None:
        """:raises ConfigError: When an entry has an unknown attribute."""
        entries = value if isinstance(value, tuple) else ("",)
        for entry in entries:
            attribute, equals, pattern = entry.partition("=")
            if not equals or attribute.strip() not in self.attributes or not _is_pattern(pattern):
                raise ConfigError(name, value, f"'{entry}' is not valid; must be {self.describe()}")

    def describe(self) -> str:
        return f"a list of attribute=pattern, the attribute one of {', '.join(self.attributes)}"


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return bool(text)


AT_LEAST_0 = Range(0)
AT_LEAST_1 = Range(1)
ANY_LIST = ListOf()
NON_EMPTY_LIST = ListOf(empty_ok=False)
NULLABLE_NON_EMPTY_LIST = ListOf(empty_ok=False, null_ok=True)
NULLABLE_LIST = ListOf(null_ok=True)
