"""Parses `listeners`, `advertised.listeners` and `listener.security.protocol.map`."""

import enum
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.config.definition import ConfigError

_ENDPOINT = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)"
_EVERY_INTERFACE = "0.0.0.0"
_PORT_MAX = 65535


class SecurityProtocol(enum.IntEnum):
    """Encryption and authentication of a listener's connections, by Kafka's numbers."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class ListenerAddress(NamedTuple):
    """An advertised address. An empty host means the machine's own name, port 0 the bound port."""

    host: str
    port: int


class Listener(NamedTuple):
    """A listener. An empty host means every interface, port 0 any free port.

    `advertised` is None if the listener is not advertised.
    """

    name: str
    host: str
    port: int
    security_protocol: SecurityProtocol
    advertised: ListenerAddress | None = None


def parse_protocol_map(key: str, text: str) -> dict[str, SecurityProtocol]:
    """Return the security protocol of each listener name in a `NAME:PROTOCOL,...` text.

    :raises ConfigError: When an entry is malformed or its protocol unknown.
    """
    protocols = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        if not colon or protocol.strip().upper() not in SecurityProtocol.__members__:
            known = ", ".join(SecurityProtocol.__members__)
            reason = f"'{entry}' must be NAME:PROTOCOL, the protocol one of {known}"
            raise ConfigError(key, text, reason)
        protocols[name.strip().upper()] = SecurityProtocol[protocol.strip().upper()]
    return protocols


def parse_endpoints(
    key: str, entries: Sequence[str], protocols: Mapping[str, SecurityProtocol]
) -> list[Listener]:
    """Return the listeners of `NAME://host:port` entries, with names in upper case.

    :raises ConfigError: When an entry is malformed, has no security protocol, or a name is repeated.
    """
    endpoints = [_parse_endpoint(key, entry, protocols) for entry in entries]
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) != len(names):
        raise ConfigError(key, tuple(entries), "each listener must have its own name")
    return endpoints


def _parse_endpoint(key: str, entry: str, protocols: Mapping[str, SecurityProtocol]) -> Listener:
    match = re.fullmatch(_ENDPOINT, entry)
    if match is None or int(match[3]) > _PORT_MAX:
        raise ConfigError(key, entry, f"must be NAME://host:port, the port from 0 to {_PORT_MAX}")
    name = match[1].upper()
    if name not in protocols:
        known = ", ".join(protocols)
        reason = f"listener {name} has no entry in listener.security.protocol.map, which has {known}"
        raise ConfigError(key, entry, reason)
    return Listener(name, match[2], int(match[3]), protocols[name])


def check_ports(entries: Sequence[str], endpoints: Sequence[Listener]) -> None:
    """Check that listeners share a port only if one has an IPv4 and the other an IPv6 address.

    :raises ConfigError: When they share it otherwise.
    """
    for endpoint in endpoints:
        sharing = [other.host for other in endpoints if other.port == endpoint.port != 0]
        if len(sharing) > 1 and sorted(map(_ip_version, sharing)) != [4, 6]:
            reason = (
                f"port {endpoint.port} is used twice: each listener must have its own port, "
                "unless one has an IPv4 and the other an IPv6 address"
            )
            raise ConfigError("listeners", tuple(entries), reason)


def _ip_version(host: str) -> int:
    import ipaddress

    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


def advertise(listeners: Sequence[Listener], advertised: Sequence[Listener] | None) -> list[Listener]:
    """Return `listeners` with the addresses of `advertised`, or with their own if it is None.

    :raises ConfigError: When an advertised name has no listener, or an address cannot be reached.
    """
    names = ", ".join(listener.name for listener in listeners)
    source = listeners if advertised is None else advertised
    for endpoint in source:
        if endpoint.name not in [listener.name for listener in listeners]:
            raise ConfigError("advertised.listeners", endpoint.name, f"must be among the listeners: {names}")
        if endpoint.host == _EVERY_INTERFACE:
            where = f"{endpoint.name}://{endpoint.host}:{endpoint.port}"
            example = f"advertised.listeners={endpoint.name}://HOST:{endpoint.port}"
            reason = f"clients cannot connect to {_EVERY_INTERFACE}; advertise a host that they can reach: {example}"
            raise ConfigError("advertised.listeners", where, reason)
    addresses = {endpoint.name: ListenerAddress(endpoint.host, endpoint.port) for endpoint in source}
    return [listener._replace(advertised=addresses.get(listener.name)) for listener in listeners]
