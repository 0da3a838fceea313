import itertools

import pytest

from barnabas.metadata.quotas import ClientQuota, entity_of
from barnabas.quotas.limits import Limit, Limits

RATE = "producer_byte_rate"

#: Entities that match user u with client id c, the most specific first, and who shares each one's quota.
PRECEDENCE: list[tuple[dict[str, str | None], tuple[str | None, str | None]]] = [
    ({"user": "u", "client-id": "c"}, ("u", "c")),
    ({"user": "u", "client-id": None}, ("u", "c")),
    ({"user": "u"}, ("u", None)),
    ({"user": None, "client-id": "c"}, ("u", "c")),
    ({"user": None, "client-id": None}, ("u", "c")),
    ({"user": None}, ("u", None)),
    ({"client-id": "c"}, (None, "c")),
    ({"client-id": None}, (None, "c")),
]


def limits(*quotas: tuple[dict[str, str | None], dict[str, float]]) -> Limits:
    return Limits(ClientQuota(entity_of(parts), values) for parts, values in quotas)


@pytest.mark.parametrize(("nearer", "farther"), [*itertools.combinations(range(8), 2)])
def test_the_most_specific_quota_applies(nearer: int, farther: int) -> None:
    (near, owner), (far, _) = PRECEDENCE[nearer], PRECEDENCE[farther]
    found = limits((far, {RATE: 1.0}), (near, {RATE: 2.0})).of_client(RATE, "u", "c")
    assert found == Limit(2.0, *owner)


@pytest.mark.parametrize("parts", [{"user": "v"}, {"client-id": "d"}, {"user": "u", "client-id": "d"}])
def test_quotas_of_other_entities_do_not_apply(parts: dict[str, str | None]) -> None:
    assert limits((parts, {RATE: 1.0})).of_client(RATE, "u", "c") is None


def test_each_kind_of_quota_is_looked_up_independently() -> None:
    found = limits(({"user": "u"}, {RATE: 1.0}), ({"client-id": "c"}, {"consumer_byte_rate": 2.0}))
    assert found.of_client(RATE, "u", "c") == Limit(1.0, "u", None)
    assert found.of_client("consumer_byte_rate", "u", "c") == Limit(2.0, None, "c")
    assert found.of_client("request_percentage", "u", "c") is None


def test_a_client_without_an_id_has_only_its_users_quotas() -> None:
    nameless = limits(*((parts, {RATE: 1.0}) for parts, _ in PRECEDENCE if "client-id" in parts))
    assert nameless.of_client(RATE, "u", "") is None
    assert limits(({"user": None}, {RATE: 1.0})).of_client(RATE, "u", "") == Limit(1.0, "u", None)


def test_a_removed_quota_leaves_those_of_other_entities_and_other_spellings() -> None:
    quotas = [
        ClientQuota(entity_of(parts), {key: value})
        for parts, key, value in (
            ({"user": "u"}, RATE, 1.0),
            ({"user": None}, RATE, 2.0),
            ({"ip": "::1"}, "connection_creation_rate", 3.0),
            ({"ip": "0::1"}, "connection_creation_rate", 4.0),
        )
    ]
    found = Limits(quotas)
    assert found.of_address("::1") == 4.0
    found.remove(quotas[0])
    found.remove(quotas[3])
    assert found.of_client(RATE, "u", "c") == Limit(2.0, "u", None)
    assert found.of_address("::1") == 3.0
    found.remove(quotas[1])
    found.remove(quotas[2])
    assert not found.has_clients
    assert not found.has_addresses


def test_addresses_have_their_own_quota_or_the_default() -> None:
    found = limits(
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 1.0}),
        ({"ip": "2001:DB8::1"}, {"connection_creation_rate": 2.0}),
        ({"ip": None}, {"connection_creation_rate": 3.0}),
    )
    assert found.of_address("10.0.0.1") == found.of_address("::ffff:10.0.0.1") == 1.0
    assert found.of_address("2001:db8:0::1") == 2.0
    assert found.of_address("10.0.0.2") == 3.0
    assert limits(({"user": "u"}, {RATE: 1.0})).of_address("10.0.0.1") is None
