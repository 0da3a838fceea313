import asyncio
from pathlib import Path

import pytest

from barnabas.base.clock import ManualClock
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.quotas import QuotaAlteration, decide_alter, entity_of
from barnabas.quotas import manager as manager_module
from barnabas.quotas.manager import INACTIVE_MS_MAX, QuotaManager
from support.images import replayed
from support.nodes import config_of

Operations = dict[str, float | None]


class Quotas:
    """A manager on a frozen clock, and the image that it reads."""

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock(0)
        self.manager = QuotaManager(config_of(directory), self.clock)
        self.image = MetadataImage()

    def set(self, parts: dict[str, str | None], operations: Operations) -> None:
        alteration = QuotaAlteration(entity_of(parts), list(operations.items()))
        before, decision = self.image, decide_alter(self.image.quotas, [alteration])
        self.image = replayed(before, decision)
        asyncio.run(self.manager.apply(before, self.image, ChangedKeys(decision.changes)))

    def produce(self, size_bytes: int, user: str = "User:u", client_id: str | None = "c") -> int:
        return self.manager.produced(self.manager.of(user, client_id), size_bytes)


@pytest.fixture
def quotas(tmp_path: Path) -> Quotas:
    return Quotas(tmp_path)


def test_without_quotas_clients_need_no_check(quotas: Quotas) -> None:
    assert not quotas.manager.enabled
    assert not quotas.manager.has_addresses
    assert quotas.produce(10**12) == 0


def test_a_quota_and_its_removal_apply_immediately(quotas: Quotas) -> None:
    quotas.produce(1500)
    quotas.set({"user": "u"}, {"producer_byte_rate": 100.0})
    assert quotas.manager.enabled
    assert quotas.produce(1500) == 5000
    quotas.set({"user": "u"}, {"producer_byte_rate": 1000.0})
    assert quotas.produce(0) == 0
    quotas.set({"user": "u"}, {"producer_byte_rate": None})
    assert not quotas.manager.enabled
    assert quotas.produce(10**9) == 0


def test_a_users_clients_share_its_quota_unless_each_has_its_own(quotas: Quotas) -> None:
    quotas.set({"user": "u"}, {"producer_byte_rate": 100.0})
    assert quotas.produce(1000, client_id="a") == 0
    assert quotas.produce(1000, client_id="b") > 0
    quotas.set({"user": "u", "client-id": None}, {"producer_byte_rate": 100.0})
    assert quotas.produce(1000, client_id="a") == 0
    assert quotas.produce(1000, client_id="b") == 0
    assert quotas.produce(1000, client_id="a") > 0


def test_data_beyond_the_quota_is_not_counted_as_fetched(quotas: Quotas) -> None:
    quotas.set({"client-id": "c"}, {"consumer_byte_rate": 100.0})
    rate = quotas.manager.of("User:u", "c").fetch
    assert rate is not None
    assert rate.burst == 1000
    assert quotas.manager.fetched(rate, 1001) > 0
    assert quotas.manager.fetched(rate, 1000) == 0
    assert quotas.manager.of("User:u", "d").fetch is None


def test_request_time_is_a_percentage_and_throttled_by_a_window_at_most(quotas: Quotas) -> None:
    quotas.set({"user": None}, {"request_percentage": 1.0})
    client = quotas.manager.of("User:u", "c")
    assert quotas.manager.record_request_time(client, 100_000_000) == 0  # 1 % of ten seconds
    assert quotas.manager.record_request_time(client, 1_000_000) == 100
    assert quotas.manager.record_request_time(client, 10**9) == 1000


def test_connections_above_the_rate_of_their_address_are_rejected(quotas: Quotas) -> None:
    quotas.set({"ip": "10.0.0.1"}, {"connection_creation_rate": 1.0})
    assert quotas.manager.has_addresses
    waits = [quotas.manager.record_connection("10.0.0.1") for _ in range(12)]
    assert waits == [0] * 10 + [1000] * 2
    assert quotas.manager.record_connection("10.0.0.2") == 0
    quotas.clock.advance(11_000)
    assert quotas.manager.record_connection("10.0.0.1") == 0
    assert quotas.manager.statistics()["refused_connections_count"] == 2


def test_rates_unused_for_an_hour_are_removed(quotas: Quotas) -> None:
    quotas.set({"user": None}, {"producer_byte_rate": 100.0, "controller_mutation_rate": 1.0})
    quotas.set({"ip": None}, {"connection_creation_rate": 1.0})
    quotas.produce(1)
    quotas.manager.record_connection("10.0.0.1")
    assert quotas.manager.statistics()["rates_count"] == 2
    quotas.clock.advance(INACTIVE_MS_MAX - 1)
    quotas.manager.expire()
    assert quotas.manager.statistics()["rates_count"] == 2
    quotas.clock.advance(1)
    quotas.manager.expire()
    statistics = quotas.manager.statistics()
    assert (statistics["rates_count"], statistics["addresses_count"], statistics["clients_count"]) == (
        0,
        0,
        0,
    )


def test_beyond_the_limit_rates_that_have_decayed_to_zero_are_removed(
    quotas: Quotas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager_module, "RATES_COUNT_MAX", 3)
    quotas.set({"client-id": None}, {"producer_byte_rate": 100.0})
    quotas.produce(2000, client_id="old")
    quotas.clock.advance(10_999)
    quotas.produce(2000, client_id="busy")
    quotas.produce(1, client_id="new")
    quotas.clock.advance(1)
    quotas.produce(1, client_id="newer")
    assert quotas.manager.statistics()["rates_count"] == 3
    assert quotas.produce(0, client_id="busy") > 0
    quotas.produce(1, client_id="newest")
    assert quotas.manager.statistics()["rates_count"] == 1


def test_clients_with_random_ids_use_bounded_memory(quotas: Quotas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "CLIENTS_COUNT_MAX", 10)
    quotas.set({"user": "u"}, {"producer_byte_rate": 100.0})
    for number in range(100):
        quotas.produce(1, client_id=f"c{number}")
    assert quotas.manager.statistics()["clients_count"] <= 10
    assert quotas.manager.statistics()["rates_count"] == 1


def test_clients_with_long_ids_use_bounded_memory_and_keep_their_quotas(quotas: Quotas) -> None:
    long_ids = [letter * 32767 for letter in "ab"]
    quotas.set({"client-id": None}, {"producer_byte_rate": 100.0})
    quotas.set({"client-id": long_ids[0]}, {"producer_byte_rate": 200.0})
    for client_id, size_bytes in zip(long_ids, (1800, 900), strict=True):
        assert quotas.produce(size_bytes, client_id=client_id) == 0
        assert quotas.produce(size_bytes, client_id=client_id) > 0
    kept = [*quotas.manager._clients, *quotas.manager._rates]
    assert max(len(each or "") for key in kept for each in key) < 1000
