"""Instances of clients that push metrics: the metrics requested of each, and when it may push (KIP-714).

The rules are Apache Kafka's (`ClientMetricsManager`): an instance has an id, pushes the metrics of all
matching subscriptions, and must observe the push interval. No IO; the caller passes the time.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import crc32c

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression

DEFAULT_INTERVAL_MS = 300_000
ALL_METRICS = "*"

#: Maximum number of instances; beyond, the one with the oldest last request is removed.
INSTANCES_COUNT_MAX = 16_384

#: An instance is removed after this many intervals without a request, but not before a minute.
INTERVALS_COUNT_MAX = 3
SILENT_MS_MIN = 60_000

_NEVER_MS = -(10**15)

#: Errors after which a client fetches its subscription immediately.
_REFETCH_ERRORS = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_RESERVED_IDS = (bytes(16), bytes(15) + b"\x01")


class Subscription(NamedTuple):
    """What is requested of matching clients."""

    metrics: tuple[str, ...]
    interval_ms: int
    #: attribute -> pattern of its whole value; all must match
    patterns: Mapping[str, re.Pattern[str]]

    def matches(self, attributes: Mapping[str, str]) -> bool:
        return all(pattern.fullmatch(attributes.get(name, "")) for name, pattern in self.patterns.items())


@dataclass(slots=True)
class Instance:
    """One known client."""

    instance_id: bytes
    attributes: Mapping[str, str]
    metrics: tuple[str, ...] = ()
    interval_ms: int = DEFAULT_INTERVAL_MS
    subscription_id: int = 0
    version: int = 0  #: version of the subscriptions that it got
    asked_ms: int = _NEVER_MS
    pushed_ms: int = _NEVER_MS
    seen_ms: int = _NEVER_MS
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE  #: the last error it got

    @property
    def expires_ms(self) -> int:
        """The time at which it is removed unless it sends a request before."""
        return self.seen_ms + max(SILENT_MS_MIN, INTERVALS_COUNT_MAX * self.interval_ms)

    def may_fetch_subscription(self, now_ms: int) -> bool:
        """Whether it may fetch its subscription now; if so, count it."""
        if now_ms - max(self.asked_ms, self.pushed_ms) < self.interval_ms:
            return False
        self.asked_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Whether it may push now: once after fetching, then after each interval; if so, count it."""
        if self.asked_ms <= self.pushed_ms and now_ms - self.pushed_ms < self.interval_ms:
            return False
        self.pushed_ms = now_ms
        return True


@dataclass(slots=True)
class ClientInstances:
    """The clients that have fetched a subscription or pushed recently."""

    now_ms: Callable[[], int]
    forgotten: Callable[[bytes], None] = lambda _: None  #: called with each removed instance
    subscriptions: Sequence[Subscription] = ()
    version: int = 0
    _instances: OrderedDict[bytes, Instance] = field(default_factory=OrderedDict)

    def subscribe(self, subscriptions: Sequence[Subscription]) -> None:
        """Replace the subscriptions; clients get them when they fetch next."""
        self.subscriptions = subscriptions
        self.version += 1

    def fetch_subscription(self, instance_id: bytes, attributes: Mapping[str, str]) -> Instance:
        """Handle a client's request for its subscription.

        :raises KafkaError: THROTTLING_QUOTA_EXCEEDED before the push interval is over.
        """
        instance = self._instance(instance_id, attributes)
        if not instance.may_fetch_subscription(self.now_ms()) and instance.last_error not in _REFETCH_ERRORS:
            raise _too_early(instance)
        instance.last_error = ErrorCode.NONE
        return instance

    def push(
        self,
        instance_id: bytes,
        attributes: Mapping[str, str],
        *,
        subscription_id: int,
        is_terminating: bool,
        compression: int,
        size_bytes: int,
        size_bytes_max: int,
    ) -> Instance:
        """Check a push of that size.

        :raises KafkaError: INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SUBSCRIPTION_ID,
            UNSUPPORTED_COMPRESSION_TYPE or TELEMETRY_TOO_LARGE.
        """
        if instance_id in _RESERVED_IDS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Client instance id {instance_id.hex()} is reserved.",
            )
        instance = self._instance(instance_id, attributes)
        try:
            if instance.is_terminating:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "The client instance has already sent its terminating push."
                )
            if not instance.may_push(self.now_ms()) and not is_terminating:
                raise _too_early(instance)
            if subscription_id != instance.subscription_id:
                message = (
                    f"The subscription id is {instance.subscription_id}, not {subscription_id}: "
                    "fetch the subscription again."
                )
                raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, message)
            if compression not in list(Compression):
                message = f"Compression type {compression} is unknown: it must be 0 to {max(Compression)}."
                raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
            if size_bytes > size_bytes_max:
                message = f"The push has {size_bytes} bytes: telemetry.max.bytes allows {size_bytes_max}."
                raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, message)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = is_terminating
        instance.last_error = ErrorCode.NONE
        return instance

    def _instance(self, instance_id: bytes, attributes: Mapping[str, str]) -> Instance:
        """Return the known or a new instance, with the current subscriptions."""
        instance = self._instances.get(instance_id)
        if instance is None or instance.version != self.version:
            known = attributes if instance is None else instance.attributes
            instance = self._instances[instance_id] = self._subscribed(instance_id, known)
        instance.seen_ms = self.now_ms()
        self._instances.move_to_end(instance_id)
        if len(self._instances) > INSTANCES_COUNT_MAX:
            oldest, _ = self._instances.popitem(last=False)
            self.forgotten(oldest)
        return instance

    def _subscribed(self, instance_id: bytes, attributes: Mapping[str, str]) -> Instance:
        matching = [subscription for subscription in self.subscriptions if subscription.matches(attributes)]
        metrics = {metric for subscription in matching for metric in subscription.metrics}
        if ALL_METRICS in metrics:
            metrics = {ALL_METRICS}
        interval_ms = min([DEFAULT_INTERVAL_MS, *(subscription.interval_ms for subscription in matching)])
        requested_metrics = tuple(sorted(metrics))
        identity = subscription_id(requested_metrics, interval_ms, instance_id)
        return Instance(instance_id, attributes, requested_metrics, interval_ms, identity, self.version)

    def expire(self) -> None:
        """Remove instances without a request for too long."""
        now_ms = self.now_ms()
        for instance_id in [
            key for key, instance in self._instances.items() if instance.expires_ms <= now_ms
        ]:
            del self._instances[instance_id]
            self.forgotten(instance_id)

    def statistics(self) -> dict[str, int]:
        return {"instances_count": len(self._instances), "subscriptions_count": len(self.subscriptions)}


def subscription_id(metrics: Sequence[str], interval_ms: int, instance_id: bytes) -> int:
    """Return the int32 that identifies a subscription to client and broker, computed as Kafka's brokers do."""
    crc = crc32c.crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    words = [int.from_bytes(instance_id[at : at + 4], "big") for at in range(0, 16, 4)]
    mixed = crc ^ words[0] ^ words[1] ^ words[2] ^ words[3]
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _too_early(instance: Instance) -> KafkaError:
    message = f"The client pushed too early; the push interval is {instance.interval_ms} ms."
    return KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)
