"""Finds the most specific quota of a client (KIP-55) in the quotas of an image."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from barnabas.metadata.quotas import CLIENT_ID, IP, USER, ClientQuota

#: The default in a pair of user and client id; no client can have this name.
DEFAULT: Final = object()

Pair = tuple[object, object]  #: user and client id: a name, DEFAULT, or None if the entity has no such part


class Limit(NamedTuple):
    """A client's quota and the clients that share it: all of this user, of this client id, or of both."""

    value: float
    user: str | None
    client_id: str | None


class Limits:
    """All quotas of one image."""

    def __init__(self, quotas: Iterable[ClientQuota] = ()) -> None:
        self._by_key: dict[str, dict[Pair, float]] = {}
        #: canonical address -> the address as a quota spells it -> limit
        self._by_address: dict[object, dict[object, float]] = {}
        for quota in quotas:
            self.add(quota)

    def add(self, quota: ClientQuota) -> None:
        parts = dict(quota.entity)
        for key, value in quota.values.items():
            table, outer, inner = self._location(key, parts)
            table.setdefault(outer, {})[inner] = value

    def remove(self, quota: ClientQuota) -> None:
        """Remove a quota that was added."""
        parts = dict(quota.entity)
        for key in quota.values:
            table, outer, inner = self._location(key, parts)
            del table[outer][inner]
            if not table[outer]:
                del table[outer]

    def _location(
        self, key: str, parts: Mapping[str, str | None]
    ) -> tuple[dict[Any, dict[Any, float]], Any, Any]:
        """Return the table of an entity's limit, and the two keys under which it is there."""
        if IP not in parts:
            return self._by_key, key, (_name(parts, USER), _name(parts, CLIENT_ID))
        address = _name(parts, IP)
        return self._by_address, canonical(address) if isinstance(address, str) else address, address

    @property
    def has_clients(self) -> bool:
        """Whether any user or client id has a quota."""
        return bool(self._by_key)

    @property
    def has_addresses(self) -> bool:
        """Whether any address has a quota."""
        return bool(self._by_address)

    def of_client(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the client's quota of this type; None if it has none. An empty client id counts as no client id."""
        limit = self._by_key.get(key)
        if not limit:
            return None
        for pair, with_user, with_client in _precedence(user, client_id):
            if pair in limit:
                return Limit(limit[pair], user if with_user else None, client_id if with_client else None)
        return None

    def of_address(self, address: str) -> float | None:
        """Return the connections per second allowed from an address; None for no limit."""
        limits = self._by_address.get(canonical(address)) or self._by_address.get(DEFAULT)
        return next(reversed(limits.values())) if limits else None


def canonical(address: str) -> str:
    """Return the canonical form of an address; an IPv4 address mapped to IPv6 becomes IPv4."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)


def _precedence(user: str, client_id: str) -> Iterable[tuple[Pair, bool, bool]]:
    """Return (entity of the quota, whether each user has its own, whether each client id has its own), the most
    specific first.
    """
    if client_id:
        yield (user, client_id), True, True
        yield (user, DEFAULT), True, True
    yield (user, None), True, False
    if client_id:
        yield (DEFAULT, client_id), True, True
        yield (DEFAULT, DEFAULT), True, True
    yield (DEFAULT, None), True, False
    if client_id:
        yield (None, client_id), False, True
        yield (None, DEFAULT), False, True


def _name(parts: Mapping[str, str | None], kind: str) -> object:
    if kind not in parts:
        return None
    name = parts[kind]
    return DEFAULT if name is None else name
