"""Addresses of brokers, and their textual form."""

from collections.abc import Sequence
from typing import NamedTuple

PORT_DEFAULT = 9092
_PORT_MAX = 65_535


class BrokerAddress(NamedTuple):
    """A host and a port; prints as `host:port`, an IPv6 host in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Sequence[str]) -> tuple[BrokerAddress, ...]:
    """Return the addresses in `host:port,host:port` (or a sequence of such parts); the default port is 9092.

    :raises ValueError: When a part is not an address, or the list is empty.
    """
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = tuple(_parse(part.strip()) for part in parts if part.strip())
    if not addresses:
        message = f"invalid bootstrap '{bootstrap}': expected host:port, or several separated by commas"
        raise ValueError(message)
    return addresses


def _parse(text: str) -> BrokerAddress:
    host, port = _split(text)
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= _PORT_MAX:
        message = f"'{text}' is not a valid broker address: expected host:port, such as 127.0.0.1:9092"
        raise ValueError(message)
    return BrokerAddress(host, int(port))


def _split(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":") or str(PORT_DEFAULT)
    if text.count(":") > 1:
        return text, str(PORT_DEFAULT)
    host, colon, port = text.partition(":")
    return host, port if colon else str(PORT_DEFAULT)
