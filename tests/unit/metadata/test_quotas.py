import math

import pytest

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.quotas import (
    QUOTAS,
    ClientQuota,
    Match,
    QuotaAlteration,
    decide_alter,
    entity_key,
    entity_of,
    find,
)
from barnabas.metadata.store import NEVER
from barnabas.wire.errors import ErrorCode
from support.images import replayed

ALICE = entity_of({"user": "alice"})
ANY_USER = entity_of({"user": None})
APP = entity_of({"client-id": "app"})
BOTH = entity_of({"user": "alice", "client-id": "app"})
ADDRESS = entity_of({"ip": "10.0.0.1"})

Operations = list[tuple[str, float | None]]


def altered(image: MetadataImage, *alterations: tuple[dict[str, str | None], Operations]) -> MetadataImage:
    """Return the image after alterations that must all succeed."""
    decision = decide_alter(
        image.quotas, [QuotaAlteration(entity_of(parts), ops) for parts, ops in alterations]
    )
    assert not [outcome.error for outcome in decision.response if outcome.error]
    return replayed(image, decision)


def test_quotas_are_set_changed_and_removed_by_key() -> None:
    image = altered(
        MetadataImage(), ({"user": "alice"}, [("producer_byte_rate", 10.0), ("request_percentage", 0.5)])
    )
    image = altered(image, ({"user": "alice"}, [("producer_byte_rate", 20.0), ("request_percentage", None)]))
    assert image.quotas[entity_key(ALICE)] == ClientQuota(ALICE, {"producer_byte_rate": 20.0})
    image = altered(image, ({"user": "alice"}, [("producer_byte_rate", None)]))
    assert dict(image.quotas) == {}


def test_the_parts_of_an_entity_are_unordered() -> None:
    assert entity_of({"user": "a", "client-id": "b"}) == entity_of({"client-id": "b", "user": "a"})


def test_default_and_named_entities_are_distinct() -> None:
    image = altered(
        MetadataImage(),
        ({"user": None}, [("producer_byte_rate", 1.0)]),
        ({"user": "alice"}, [("producer_byte_rate", 2.0)]),
        ({"user": "alice", "client-id": None}, [("producer_byte_rate", 3.0)]),
        ({"ip": None}, [("connection_creation_rate", 4.0)]),
    )
    assert [quota.values for quota in image.quotas.values()] == [
        {"producer_byte_rate": 1.0},
        {"producer_byte_rate": 2.0},
        {"producer_byte_rate": 3.0},
        {"connection_creation_rate": 4.0},
    ]


def test_an_unchanged_quota_is_not_written() -> None:
    image = altered(MetadataImage(), ({"user": "alice"}, [("producer_byte_rate", 10.0)]))
    same = QuotaAlteration(ALICE, [("producer_byte_rate", 10.0), ("consumer_byte_rate", None)])
    decision = decide_alter(image.quotas, [same])
    assert decision.changes == ()
    assert decision.response[0].error is None


def test_validate_only_returns_the_same_and_changes_nothing() -> None:
    good, bad = (
        QuotaAlteration(ALICE, [("producer_byte_rate", 1.0)]),
        QuotaAlteration(APP, [("no.such", 1.0)]),
    )
    real = decide_alter(MetadataImage().quotas, [good, bad])
    tried = decide_alter(MetadataImage().quotas, [good, bad], validate_only=True)
    assert [each.error and each.error.code for each in tried.response] == [None, ErrorCode.INVALID_REQUEST]
    assert [str(each) for each in tried.response] == [str(each) for each in real.response]
    assert (tried.changes, len(real.changes)) == ((), 1)


def test_a_decision_depends_on_the_rows_that_it_changes() -> None:
    decision = decide_alter(MetadataImage().quotas, [QuotaAlteration(ALICE, [("producer_byte_rate", 1.0)])])
    assert decision.reads == {QUOTAS.key(entity_key(ALICE)): NEVER}


@pytest.mark.parametrize(
    ("parts", "operations", "message"),
    [
        ({}, [], "has no entity"),
        ({"group": "g"}, [], "'group' is not an entity type"),
        ({"user": ""}, [], "name of a user is empty"),
        ({"ip": "10.0.0.1", "user": "alice"}, [], "Invalid quota entity combination"),
        ({"ip": "nowhere"}, [], "'nowhere' is not a valid IP address"),
        ({"ip": "10.0.0.1"}, [("producer_byte_rate", 1.0)], "must be one of connection_creation_rate"),
        ({"user": "alice"}, [("connection_creation_rate", 1.0)], "Invalid quota 'connection_creation_rate'"),
        ({"user": "alice"}, [("producer_byte_rate", 1.5)], "must be a whole number"),
        ({"user": "alice"}, [("producer_byte_rate", 1e19)], "too large"),
        ({"ip": None}, [("connection_creation_rate", 2.0**31)], "too large"),
        ({"user": "alice"}, [("producer_byte_rate", 0.0)], "must be larger than 0"),
        ({"user": "alice"}, [("request_percentage", -1.0)], "must be larger than 0"),
        ({"user": "alice"}, [("request_percentage", math.nan)], "must be larger than 0"),
        ({"user": "alice"}, [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)], "twice"),
    ],
)
def test_an_invalid_alteration_is_rejected_as_a_whole_and_others_apply(
    parts: dict[str, str | None], operations: Operations, message: str
) -> None:
    bad = QuotaAlteration(entity_of(parts), [("consumer_byte_rate", None), *operations])
    good = QuotaAlteration(APP, [("producer_byte_rate", 5.0)])
    decision = decide_alter(MetadataImage().quotas, [bad, good])
    refused, passed = decision.response
    assert refused.error is not None
    assert refused.error.code is ErrorCode.INVALID_REQUEST
    assert message in refused.error.message
    assert passed.error is None
    assert list(replayed(MetadataImage(), decision).quotas) == [entity_key(APP)]


def test_the_first_of_duplicate_entities_applies_and_the_second_is_an_error() -> None:
    twice = [QuotaAlteration(ALICE, [("producer_byte_rate", value)]) for value in (1.0, 2.0)]
    decision = decide_alter(MetadataImage().quotas, twice)
    (outcome,) = decision.response
    assert outcome.error is not None
    assert "only the first" in outcome.error.message
    assert replayed(MetadataImage(), decision).quotas[entity_key(ALICE)].values == {"producer_byte_rate": 1.0}


@pytest.mark.parametrize("value", [1.0, 1e-3, 1e300])
def test_request_percentages_and_mutation_rates_may_be_fractions(value: float) -> None:
    altered(
        MetadataImage(),
        ({"user": "alice"}, [("request_percentage", value), ("controller_mutation_rate", value)]),
    )


IMAGE = altered(
    MetadataImage(),
    ({"user": "alice"}, [("producer_byte_rate", 1.0)]),
    ({"user": None}, [("producer_byte_rate", 2.0)]),
    ({"client-id": "app"}, [("producer_byte_rate", 3.0)]),
    ({"user": "alice", "client-id": "app"}, [("producer_byte_rate", 4.0)]),
    ({"ip": "10.0.0.1"}, [("connection_creation_rate", 5.0)]),
)


@pytest.mark.parametrize(
    ("matches", "strict", "found"),
    [
        ([], False, {ALICE, ANY_USER, APP, BOTH, ADDRESS}),
        ([], True, set()),
        ([Match("user", "alice")], False, {ALICE, BOTH}),
        ([Match("user", "alice")], True, {ALICE}),
        ([Match("user")], False, {ANY_USER}),
        ([Match("user", any_name=True)], True, {ALICE, ANY_USER}),
        ([Match("user", any_name=True), Match("client-id", "app")], True, {BOTH}),
        ([Match("ip", any_name=True)], False, {ADDRESS}),
        ([Match("ip", "10.0.0.2")], False, set()),
    ],
)
def test_quotas_are_found_by_type_and_name(
    matches: list[Match], strict: bool, found: set[tuple[tuple[str, str | None], ...]]
) -> None:
    assert {quota.entity for quota in find(IMAGE.quotas, matches, strict=strict)} == found
