"""Decides which Host headers name this machine, and which addresses belong to trusted proxies."""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

#: Hosts of listeners on all interfaces.
EVERY_INTERFACE = ("", "0.0.0.0", "::")


def is_own_host(host: str, hosts: Iterable[str]) -> bool:
    """Whether a Host header names this machine, by an address or by one of the names in `hosts`.

    Another site's page could point its own name at this machine and read what is served (DNS rebinding). An address
    cannot be misused in this way.
    """
    parts = split_url(f"//{host}") if _is_plain(host) else None
    name = parts.hostname if parts is not None else None
    if not name:
        return False
    return _is_address(name) or name in hosts or name.endswith(".localhost")


def own_names(further: Iterable[str] = ()) -> frozenset[str]:
    """Return this machine's own names and those in `further`, in lower case."""
    names = ("localhost", socket.gethostname(), socket.getfqdn(), *further)
    return frozenset(name.lower() for name in names if name)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_network(text: str) -> bool:
    """Whether a text is an address such as 10.1.2.3 or a network such as 10.1.0.0/16."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def split_url(url: str) -> SplitResult | None:
    """Return the parts of a URL; None for a malformed one."""
    try:
        return urlsplit(url)
    except ValueError:  # unbalanced brackets
        return None


def _is_plain(host: str) -> bool:
    return all(character.isalnum() or character in ".-_:[]" for character in host)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
