import pytest

from barnabas.metadata import acls
from barnabas.metadata.acls import (
    ACLS,
    CREATED_COUNT_MAX,
    REMOVED_COUNT_MAX,
    Removed,
    acl_key,
    decide_create_acls,
    decide_remove_acls,
    matching,
    matching_each,
)
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import NEVER
from barnabas.wire.acls import AclBinding, AclFilter, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from support.acls import allow, allow_cluster, deny
from support.images import replayed

READ, WRITE, ANY_OPERATION = AclOperation.READ, AclOperation.WRITE, AclOperation.ANY
LITERAL, PREFIXED, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH


def image_with(*bindings: AclBinding) -> MetadataImage:
    return replayed(MetadataImage(), decide_create_acls(MetadataImage().acls, bindings))


def test_a_created_acl_is_in_the_image() -> None:
    binding = allow(READ, name="a/b", pattern_type=PREFIXED, host="10.0.0.1", principal="User:größe/x")
    image = image_with(binding)
    assert list(image.acls.values()) == [binding]
    assert ACLS.decode(ACLS.put("", binding).value or b"") == binding


def test_an_existing_or_duplicate_acl_is_created_once() -> None:
    image = image_with(allow(READ))
    decision = decide_create_acls(image.acls, [allow(READ), allow(WRITE), allow(WRITE)])
    assert decision.response == [None, None, None]
    assert [change.key for change in decision.changes] == [ACLS.key(acl_key(allow(WRITE)))]
    assert decision.reads == {ACLS.key(acl_key(allow(WRITE))): NEVER}


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        (allow(READ, name=""), "resource name is empty"),
        (allow(READ, ResourceType.CLUSTER, "other"), "'other' is invalid"),
        (allow(READ, ResourceType.ANY), "resource type ANY"),
        (allow(READ, pattern_type=MATCH), "pattern type MATCH"),
        (allow(READ, pattern_type=PatternType.ANY), "pattern type ANY"),
        (allow(ANY_OPERATION), "operation ANY"),
        (allow(READ, permission=AclPermission.ANY), "permission ANY"),
        (allow(READ, principal="alice"), "'alice': expected Type:name"),
    ],
)
def test_an_invalid_acl_is_rejected_individually(binding: AclBinding, message: str) -> None:
    decision = decide_create_acls(MetadataImage().acls, [binding, allow(READ)])
    error, made = decision.response
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.INVALID_REQUEST
    assert message in error.message
    assert made is None
    assert len(decision.changes) == 1


T, STAR = allow(READ), allow(READ, name="*")
PREFIX, OTHER = allow(READ, name="te", pattern_type=PREFIXED), allow(WRITE, name="test")
CLUSTER = allow_cluster(AclOperation.ALTER)
EVERY = [T, STAR, PREFIX, OTHER, CLUSTER, deny(READ, host="10.0.0.1", principal="User:bob")]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), EVERY),
        (AclFilter(resource_type=ResourceType.CLUSTER), [CLUSTER]),
        (AclFilter(operation=WRITE), [OTHER]),
        (AclFilter(permission=AclPermission.DENY), EVERY[5:]),
        (AclFilter(principal="User:bob"), EVERY[5:]),
        (AclFilter(host="10.0.0.1"), EVERY[5:]),
        (AclFilter(pattern_type=PREFIXED), [PREFIX]),
        (AclFilter(pattern_type=LITERAL, resource_name="te"), []),
        (AclFilter(resource_name="te"), [PREFIX]),
        (AclFilter(resource_name="*"), [STAR]),
        (AclFilter(pattern_type=MATCH, resource_name="test"), [STAR, PREFIX, OTHER]),
        (AclFilter(pattern_type=MATCH, resource_name="te"), [STAR, PREFIX]),
        (AclFilter(pattern_type=MATCH, resource_name="*"), [STAR]),
        (AclFilter(pattern_type=MATCH), EVERY),
    ],
)
def test_a_filter_finds_matching_acls(wanted: AclFilter, found: list[AclBinding]) -> None:
    assert matching(image_with(*EVERY).acls, wanted) == found


def test_each_filter_matches_acls_that_others_match_too() -> None:
    image = image_with(*EVERY)
    filters = [AclFilter(resource_name="t"), AclFilter(operation=READ), AclFilter(host="nowhere")]
    assert matching_each(image.acls, filters) == [[T, EVERY[5]], [T, STAR, PREFIX, EVERY[5]], []]


def test_acls_are_removed_unless_another_request_has_removed_them() -> None:
    image = image_with(T, STAR, OTHER)
    decision = decide_remove_acls(image.acls, [T, PREFIX, STAR])
    assert decision.response == [Removed(T), Removed(PREFIX), Removed(STAR)]
    assert decision.reads == {ACLS.key(acl_key(T)): 1, ACLS.key(acl_key(STAR)): 1}
    assert list(replayed(image, decision).acls.values()) == [OTHER]


def test_a_request_that_deletes_too_many_acls_is_rejected() -> None:
    image = image_with(*(allow(READ, name=f"t{n}") for n in range(REMOVED_COUNT_MAX)))
    image = replayed(image, decide_create_acls(image.acls, [allow(WRITE)]))
    with pytest.raises(KafkaError, match="10001 ACLs; one request can remove at most 10000") as caught:
        matching_each(image.acls, [AclFilter()])
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def violation(binding: AclBinding) -> None:
    if binding.resource_name == "t":
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "t is protected")


def test_an_acl_that_violates_a_policy_is_not_created_unless_it_exists() -> None:
    image = image_with(allow(READ))
    decision = decide_create_acls(image.acls, [allow(READ), allow(WRITE), allow(READ, name="u")], violation)
    assert [error and error.code for error in decision.response] == [None, ErrorCode.POLICY_VIOLATION, None]
    assert [change.key for change in decision.changes] == [ACLS.key(acl_key(allow(READ, name="u")))]


def test_an_acl_whose_deletion_violates_a_policy_is_kept() -> None:
    image = image_with(allow(READ), allow(READ, name="u"))
    decision = decide_remove_acls(image.acls, list(image.acls.values()), violation)
    [stays, goes] = decision.response
    assert stays.error is not None
    assert stays.error.code is ErrorCode.POLICY_VIOLATION
    assert goes == Removed(allow(READ, name="u"))
    assert list(replayed(image, decision).acls.values()) == [allow(READ)]


def test_a_request_may_create_as_many_acls_as_in_kafka() -> None:
    bindings = [allow(READ, name=f"t{number}") for number in range(CREATED_COUNT_MAX + 1)]
    with pytest.raises(KafkaError, match="can create at most 10000") as raised:
        decide_create_acls(MetadataImage().acls, bindings)
    assert raised.value.code is ErrorCode.POLICY_VIOLATION
    assert len(decide_create_acls(MetadataImage().acls, bindings[1:]).changes) == CREATED_COUNT_MAX


def test_filters_for_one_acl_find_it_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "COMPARED_COUNT_MAX", 0)
    image = image_with(allow(READ), allow(WRITE), allow(READ, name="p", pattern_type=PREFIXED))
    exact = [AclFilter(*allow(READ)), AclFilter(*allow(READ, name="gone")), AclFilter(*allow(READ))]
    assert matching_each(image.acls, exact) == [[allow(READ)], [], [allow(READ)]]


def test_the_number_of_comparisons_of_filters_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "COMPARED_COUNT_MAX", 3)
    image = image_with(allow(READ), allow(WRITE))
    same = [AclFilter(resource_name="a")] * 5
    assert matching_each(image.acls, same) == [[]] * 5
    with pytest.raises(KafkaError, match="need 4 comparisons with ACLs; the limit is 3"):
        matching_each(image.acls, [*same, AclFilter(resource_name="b")])
