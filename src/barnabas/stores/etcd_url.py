"""The URL of a store in etcd: `etcd://HOST:PORT,HOST:PORT/PREFIX`, or `etcds://` with TLS."""

import re
from typing import NamedTuple

from barnabas.stores.etcd_http import EtcdEndpoint

PORT_DEFAULT = 2379
PREFIX_DEFAULT = "barnabas"

_PORT_MAX = 65_535
_ENDPOINT = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s\[\]:@?#]+)(:(?P<port>[0-9]{1,5}))?")


class EtcdUrl(NamedTuple):
    endpoints: tuple[EtcdEndpoint, ...]
    prefix: str

    @property
    def is_tls(self) -> bool:
        return self.endpoints[0].is_tls


def parse_etcd_url(url: str) -> EtcdUrl:
    """:raises ValueError: With the part that is not valid."""
    scheme, _, rest = url.partition("://")
    hosts, _, prefix = rest.partition("/")
    endpoints = tuple(_parse_endpoint(part.strip(), is_tls=scheme == "etcds") for part in hosts.split(","))
    return EtcdUrl(endpoints, prefix.strip("/") or PREFIX_DEFAULT)


def _parse_endpoint(text: str, *, is_tls: bool) -> EtcdEndpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is not None:
        port = int(match["port"] or PORT_DEFAULT)
        if 0 < port <= _PORT_MAX:
            return EtcdEndpoint(match["host"].strip("[]"), port, is_tls)
    message = f"'{text}' is not an endpoint of etcd: expected HOST:PORT, for example 127.0.0.1:{PORT_DEFAULT}"
    raise ValueError(message)
