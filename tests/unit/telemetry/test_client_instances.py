import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.telemetry import client_instances
from barnabas.telemetry.client_instances import (
    DEFAULT_INTERVAL_MS,
    ClientInstances,
    Instance,
    Subscription,
    subscription_id,
)
from barnabas.wire.errors import ErrorCode, KafkaError

ID = bytes(range(16))
CLIENT = {"client_id": "app-1", "client_software_name": "java"}


class FrozenInstances:
    """Instances on a frozen clock, and the ids that were removed."""

    def __init__(self, *subscriptions: Subscription) -> None:
        self.now_ms = 0
        self.gone: list[bytes] = []
        self.instances = ClientInstances(lambda: self.now_ms, self.gone.append)
        self.instances.subscribe(subscriptions)

    def ask(self, instance_id: bytes = ID) -> Instance:
        return self.instances.fetch_subscription(instance_id, CLIENT)

    def push(self, instance_id: bytes = ID, **fields: Any) -> Instance:
        identity = fields.pop("subscription_id", None)
        if identity is None:
            known = self.instances._instances.get(instance_id)
            identity = known.subscription_id if known else 0
        defaults = {"is_terminating": False, "compression": 0, "size_bytes": 10, "size_bytes_max": 100}
        return self.instances.push(instance_id, CLIENT, subscription_id=identity, **(defaults | fields))


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(KafkaError) as caught:
        yield
    assert caught.value.code is code
    assert caught.value.message


def subscription(*metrics: str, interval_ms: int = 1000, **patterns: str) -> Subscription:
    return Subscription(metrics, interval_ms, {key: re.compile(text) for key, text in patterns.items()})


def test_a_client_gets_the_metrics_of_all_matching_subscriptions() -> None:
    instances = FrozenInstances(
        subscription("a", "b", interval_ms=5000),
        subscription("b", "c", client_id="app-.*", client_software_name="java"),
        subscription("d", interval_ms=100, client_id="app-.*", client_software_name="go"),
        subscription("e", interval_ms=100, client_id="app"),
    )
    found = instances.ask()
    assert (found.metrics, found.interval_ms) == (("a", "b", "c"), 1000)


def test_all_metrics_include_any_and_no_match_means_none() -> None:
    assert FrozenInstances(subscription("a"), subscription("*")).ask().metrics == ("*",)
    found = FrozenInstances(subscription("a", client_id="other")).ask()
    assert (found.metrics, found.interval_ms) == ((), DEFAULT_INTERVAL_MS)


def test_a_client_may_request_its_subscription_once_per_interval_unless_it_changed() -> None:
    instances = FrozenInstances(subscription("a"))
    instances.ask()
    instances.now_ms = 999
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        instances.ask()
    instances.instances.subscribe([subscription("b")])
    assert instances.ask().metrics == ("b",)
    instances.now_ms = 1999
    assert instances.ask().metrics == ("b",)


def test_a_client_pushes_once_after_its_request_and_then_once_per_interval() -> None:
    instances = FrozenInstances(subscription("a"))
    instances.ask()
    instances.now_ms = 10
    instances.push()
    instances.now_ms = 1009
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        instances.push()
    instances.now_ms = 1010
    instances.push()


def test_the_terminating_push_is_accepted_at_any_time_and_is_the_last() -> None:
    instances = FrozenInstances(subscription("a"))
    instances.ask()
    instances.push()
    instances.push(is_terminating=True)
    instances.now_ms = 10_000
    with refused(ErrorCode.INVALID_REQUEST):
        instances.push()


def test_a_changed_subscription_must_be_requested_again() -> None:
    instances = FrozenInstances(subscription("a"))
    instances.ask()
    before = instances.push().subscription_id
    instances.instances.subscribe([subscription("b")])
    with refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
        instances.push(subscription_id=before)
    assert instances.ask().metrics == ("b",)
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        instances.ask()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": bytes(15) + b"\x01"}, ErrorCode.INVALID_REQUEST),
        ({"subscription_id": 7}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"size_bytes": 101}, ErrorCode.TELEMETRY_TOO_LARGE),
    ],
)
def test_an_invalid_push_is_rejected(fields: dict[str, Any], code: ErrorCode) -> None:
    instances = FrozenInstances(subscription("a"))
    instances.ask()
    with refused(code):
        instances.push(**fields)


def test_a_client_silent_for_three_intervals_is_removed() -> None:
    instances = FrozenInstances(subscription("a", interval_ms=30_000))
    instances.ask()
    instances.now_ms = 89_999
    instances.instances.expire()
    assert instances.gone == []
    instances.now_ms = 90_000
    instances.instances.expire()
    assert instances.gone == [ID]
    assert instances.instances.statistics() == {"instances_count": 0, "subscriptions_count": 1}


def test_beyond_the_limit_the_longest_silent_client_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_instances, "INSTANCES_COUNT_MAX", 2)
    instances = FrozenInstances(subscription("a"))
    first, second, third = (bytes([number]) * 16 for number in (1, 2, 3))
    instances.ask(first)
    instances.ask(second)
    instances.push(first)
    instances.ask(third)
    assert instances.gone == [second]


def test_subscription_ids_are_int32_and_depend_on_client_metrics_and_interval() -> None:
    ids = {
        subscription_id(("a",), 1000, ID),
        subscription_id(("a", "b"), 1000, ID),
        subscription_id(("a",), 2000, ID),
        subscription_id(("a",), 1000, bytes([*ID[:15], 99])),
    }
    assert len(ids) == 4
    assert all(-(2**31) <= each < 2**31 for each in ids)
