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


class Told:
    """Instances on a clock that stands still, and who was forgotten."""

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


def wanted(*metrics: str, interval_ms: int = 1000, **patterns: str) -> Subscription:
    return Subscription(metrics, interval_ms, {key: re.compile(text) for key, text in patterns.items()})


def test_a_client_is_asked_for_what_all_subscriptions_that_match_it_want() -> None:
    told = Told(
        wanted("a", "b", interval_ms=5000),
        wanted("b", "c", client_id="app-.*", client_software_name="java"),
        wanted("d", interval_ms=100, client_id="app-.*", client_software_name="go"),
        wanted("e", interval_ms=100, client_id="app"),
    )
    found = told.ask()
    assert (found.metrics, found.interval_ms) == (("a", "b", "c"), 1000)


def test_all_metrics_are_all_and_nobody_who_matches_nothing_is_asked_for_any() -> None:
    assert Told(wanted("a"), wanted("*")).ask().metrics == ("*",)
    found = Told(wanted("a", client_id="other")).ask()
    assert (found.metrics, found.interval_ms) == ((), DEFAULT_INTERVAL_MS)


def test_a_client_asks_once_in_an_interval_unless_something_has_changed() -> None:
    told = Told(wanted("a"))
    told.ask()
    told.now_ms = 999
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        told.ask()
    told.instances.subscribe([wanted("b")])
    assert told.ask().metrics == ("b",)
    told.now_ms = 1999
    assert told.ask().metrics == ("b",)


def test_a_client_pushes_once_after_it_has_asked_and_then_once_in_an_interval() -> None:
    told = Told(wanted("a"))
    told.ask()
    told.now_ms = 10
    told.push()
    told.now_ms = 1009
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        told.push()
    told.now_ms = 1010
    told.push()


def test_the_last_words_may_come_at_any_time_and_nothing_after_them() -> None:
    told = Told(wanted("a"))
    told.ask()
    told.push()
    told.push(is_terminating=True)
    told.now_ms = 10_000
    with refused(ErrorCode.INVALID_REQUEST):
        told.push()


def test_a_change_makes_a_client_ask_again() -> None:
    told = Told(wanted("a"))
    told.ask()
    before = told.push().subscription_id
    told.instances.subscribe([wanted("b")])
    with refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
        told.push(subscription_id=before)
    assert told.ask().metrics == ("b",)
    with refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED):
        told.ask()


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
def test_a_push_that_is_wrong_is_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    told = Told(wanted("a"))
    told.ask()
    with refused(code):
        told.push(**fields)


def test_who_is_silent_for_three_intervals_is_forgotten() -> None:
    told = Told(wanted("a", interval_ms=30_000))
    told.ask()
    told.now_ms = 89_999
    told.instances.expire()
    assert told.gone == []
    told.now_ms = 90_000
    told.instances.expire()
    assert told.gone == [ID]
    assert told.instances.statistics() == {"instances_count": 0, "subscriptions_count": 1}


def test_of_too_many_the_one_that_was_silent_the_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_instances, "INSTANCES_COUNT_MAX", 2)
    told = Told(wanted("a"))
    first, second, third = (bytes([number]) * 16 for number in (1, 2, 3))
    told.ask(first)
    told.ask(second)
    told.push(first)
    told.ask(third)
    assert told.gone == [second]


def test_subscription_ids_are_int32_and_tell_clients_metrics_and_intervals_apart() -> None:
    ids = {
        subscription_id(("a",), 1000, ID),
        subscription_id(("a", "b"), 1000, ID),
        subscription_id(("a",), 2000, ID),
        subscription_id(("a",), 1000, bytes([*ID[:15], 99])),
    }
    assert len(ids) == 4
    assert all(-(2**31) <= each < 2**31 for each in ids)
