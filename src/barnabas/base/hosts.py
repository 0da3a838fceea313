"""Names and addresses of HTTP requests: which names are this machine's, which addresses are of trusted proxies."""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit


def is_own_host(host: str, hosts: Iterable[str]) -> bool:
    """Whether a Host header calls this machine: by any address, or by one of the names in `hosts`.

    A page of another site could have its own name point here and read what is served (DNS rebinding). An address
    cannot be misused so.
    """
    parts = split_url(f"//{host}") if _is_plain(host) else None
    name = parts.hostname if parts is not None else None
    if not name:
        return False
    return _is_address(name) or name in hosts or name.endswith(".localhost")


def own_names(further: Iterable[str] = ()) -> frozenset[str]:
    """The names that this machine has for itself, and those in `further`, in lower case."""
    names = ("localhost", socket.gethostname(), socket.getfqdn(), *further)
    return frozenset(name.lower() for name in names if name)


def is_network(text: str) -> bool:
    """Whether a text is an address, as 10.1.2.3, or a network, as 10.1.0.0/16."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def split_url(url: str) -> SplitResult | None:
    """The parts of a URL; None for one that is malformed."""
    try:
        return urlsplit(url)
    except ValueError:  # brackets that nothing closes
        return None


def _is_plain(host: str) -> bool:
    return all(character.isalnum() or character in ".-_:[]" for character in host)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
