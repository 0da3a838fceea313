"""Quotas of one broker: measures each client's usage and computes its throttle time (KIP-13, KIP-124, KIP-599)."""

import asyncio
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

from barnabas.base.clock import Clock
from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.quotas import QUOTAS
from barnabas.quotas.limits import Limit, Limits, canonical
from barnabas.quotas.rate import Rate, Windows
from barnabas.quotas.token_bucket import TokenBucket
from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry

PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"

#: Clients inactive for this long are removed, as in Kafka (`INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS`).
INACTIVE_MS_MAX = 3_600_000

#: The size of the cache of clients' quotas, which is cleared when full, because client ids are free to choose.
CLIENTS_COUNT_MAX = 10_000

#: Rates kept per type; beyond, idle rates are removed, or all if none is idle.
RATES_COUNT_MAX = 20_000

#: Longer client ids are kept as a digest.
REMEMBERED_ID_LENGTH_MAX = 255

#: Changed quotas that are applied before other clients are served, some microseconds each.
_APPLIED_COUNT = 500

_PERCENT_SECONDS_PER_NS = 100 / 1_000_000_000

KeyT = TypeVar("KeyT")
MeasureT = TypeVar("MeasureT", Rate, TokenBucket)

#: The owner of a rate: the key of the quota, and the user, the client id or both.
Owner = tuple[str, str | None, str | None]


class ClientQuotas:
    """The quotas of one user with one client id; None means no quota."""

    __slots__ = ("fetch", "mutation", "produce", "request")

    def __init__(
        self,
        produce: Rate | None = None,
        fetch: Rate | None = None,
        request: Rate | None = None,
        mutation: TokenBucket | None = None,
    ) -> None:
        self.produce = produce
        self.fetch = fetch
        self.request = request
        self.mutation = mutation


class QuotaManager:
    """Follows the image; called on each request if `enabled`, and on each connection if `has_addresses`."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self.now_ms = clock.monotonic_ms
        self._windows = windows_of(config, "quota.window")
        self._mutation_windows = windows_of(config, "controller.quota.window")
        self._limits = Limits()
        self._clients: dict[tuple[str, str], ClientQuotas] = {}
        self._rates: dict[Owner, Rate] = {}
        self._buckets: dict[Owner, TokenBucket] = {}
        self._addresses: dict[str, Rate] = {}
        self.version = 0  #: rises whenever results of `of` may have become invalid
        self.enabled = False  #: whether any client has a quota
        self.has_addresses = False  #: whether any address has a quota
        self.throttled_count = 0  #: throttled responses
        self.refused_connections_count = 0

    def load(self, image: MetadataImage) -> None:
        """Replace all quotas by those of an image."""
        self._limits = Limits(image.quotas.values())
        self._limits_changed()

    async def apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        """Apply one commit; called by the metadata writer."""
        keys = dict.fromkeys(changed.of(QUOTAS))
        if not keys:
            return
        for number, key in enumerate(keys, start=1):
            if key in before.quotas:
                self._limits.remove(before.quotas[key])
            if key in after.quotas:
                self._limits.add(after.quotas[key])
            if not number % _APPLIED_COUNT:
                await asyncio.sleep(0)
        self._limits_changed()

    def _limits_changed(self) -> None:
        self._expire_clients()
        self.enabled = self._limits.has_clients
        self.has_addresses = self._limits.has_addresses

    def of(self, principal: str, client_id: str | None) -> ClientQuotas:
        """Return the quotas of a client; the principal as `Type:name`."""
        user, client_id = principal.partition(":")[2], client_id or ""
        key = user, _client_id_key(client_id)
        quotas = self._clients.get(key)
        if quotas is None:
            if len(self._clients) >= CLIENTS_COUNT_MAX:
                self._expire_clients()
            quotas = self._clients[key] = self._look_up(user, client_id)
        return quotas

    def _look_up(self, user: str, client_id: str) -> ClientQuotas:
        def rate(key: str) -> Rate | None:
            limit = self._limits.of_client(key, user, client_id)
            return None if limit is None else self._rate(_owner(key, limit), limit)

        bucket = None
        limit = self._limits.of_client(MUTATION, user, client_id)
        if limit is not None:
            bucket = self._bucket(_owner(MUTATION, limit), limit)
        return ClientQuotas(rate(PRODUCE), rate(FETCH), rate(REQUEST), bucket)

    def _rate(self, owner: Owner, limit: Limit) -> Rate:
        """Return the owner's rate with its history, and the current limit."""
        rate = self._rates.get(owner)
        if rate is None:
            self._make_room(self._rates)
            rate = self._rates[owner] = Rate(self._windows, limit.value, self.now_ms())
        rate.limit = limit.value
        return rate

    def _bucket(self, owner: Owner, limit: Limit) -> TokenBucket:
        bucket = self._buckets.get(owner)
        if bucket is None:
            self._make_room(self._buckets)
            bucket = self._buckets[owner] = TokenBucket(self._mutation_windows, limit.value, self.now_ms())
        bucket.limit = limit.value
        return bucket

    def produced(self, quotas: ClientQuotas, size_bytes: int) -> int:
        """Count the bytes of a Produce request; return the throttle time in ms."""
        return 0 if quotas.produce is None else quotas.produce.record(size_bytes, self.now_ms())

    def fetched(self, rate: Rate, size_bytes: int) -> int:
        """Count the bytes of a Fetch response; above 0 the response must not be sent and is not counted."""
        now_ms = self.now_ms()
        throttle_ms = rate.record(size_bytes, now_ms)
        if throttle_ms:
            rate.record(-size_bytes, now_ms)
        return throttle_ms

    def record_request_time(self, quotas: ClientQuotas, elapsed_ns: int) -> int:
        """Count the time that a request took on the event loop; return the throttle time in ms."""
        if quotas.request is None:
            return 0
        percent_seconds = elapsed_ns * _PERCENT_SECONDS_PER_NS
        return min(quotas.request.record(percent_seconds, self.now_ms()), self._windows.size_ms)

    def record_connection(self, address: str) -> int:
        """Count a connection, and return 0; if there are too many, return after how many ms to close it instead."""
        limit = self._limits.of_address(address)
        if limit is None:
            return 0
        now_ms, address = self.now_ms(), canonical(address)
        rate = self._addresses.get(address)
        if rate is None:
            self._make_room(self._addresses)
            rate = self._addresses[address] = Rate(self._windows, limit, now_ms)
        rate.limit = limit
        throttle_ms = min(rate.record(1, now_ms), self._windows.size_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
            self.refused_connections_count += 1
        return throttle_ms

    def _make_room(self, table: dict[KeyT, MeasureT]) -> None:
        if len(table) < RATES_COUNT_MAX:
            return
        silent_ms = self.now_ms() - self._windows.count * self._windows.size_ms
        _drop(table, lambda each: each.last_ms <= silent_ms)
        if len(table) >= RATES_COUNT_MAX:
            table.clear()
        self._expire_clients()

    def expire(self) -> None:
        """Remove rates and clients that were inactive for an hour."""
        silent_ms = self.now_ms() - INACTIVE_MS_MAX
        _drop(self._rates, lambda rate: rate.last_ms <= silent_ms)
        _drop(self._buckets, lambda bucket: bucket.last_ms <= silent_ms)
        _drop(self._addresses, lambda rate: rate.last_ms <= silent_ms)
        self._expire_clients()

    def _expire_clients(self) -> None:
        """Clear the cache of clients' quotas."""
        self._clients.clear()
        self.version += 1

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(names.THROTTLED, lambda: [({}, self.throttled_count)])
        registry.add_metric(names.REFUSED_CONNECTIONS, lambda: [({}, self.refused_connections_count)])

    def statistics(self) -> dict[str, int]:
        return {
            "clients_count": len(self._clients),
            "rates_count": len(self._rates) + len(self._buckets),
            "addresses_count": len(self._addresses),
            "throttled_count": self.throttled_count,
            "refused_connections_count": self.refused_connections_count,
        }


def _owner(key: str, limit: Limit) -> Owner:
    return key, limit.user, None if limit.client_id is None else _client_id_key(limit.client_id)


def _client_id_key(client_id: str) -> str:
    """Return the key under which a client id is kept; ids may have up to 32 KiB."""
    if len(client_id) <= REMEMBERED_ID_LENGTH_MAX:
        return client_id
    return sha256(client_id.encode()).hexdigest()


def windows_of(config: BrokerConfig, prefix: str) -> Windows:
    """Return the windows that `prefix.num` and `prefix.size.seconds` set."""
    return Windows(config.integer(f"{prefix}.num"), config.integer(f"{prefix}.size.seconds") * 1000)


def _drop(table: dict[KeyT, MeasureT], is_gone: Callable[[MeasureT], bool]) -> None:
    for key in [key for key, value in table.items() if is_gone(value)]:
        del table[key]
