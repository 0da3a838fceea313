"""Grants and drift derived from audit events."""

import barnabas.api
from barnabas.api import registry
from barnabas.client.admin.acls import AclUse
from barnabas.reports.audit.analysis import (
    NEEDS,
    NOT_AUDITED,
    UNCHANGED,
    UNUSED,
    USED,
    AclChange,
    DriftCount,
    Grant,
    KeyDay,
    Use,
    acl_text,
    advice,
    drift_of,
    grant_uses,
    grants_of,
    use_status,
)
from barnabas.wire.acls import AclBinding, AclOperation, PatternType, ResourceType
from support.acls import allow, allow_cluster, deny

ALTER = allow(AclOperation.ALTER_CONFIGS, name="orders")
READ = allow(AclOperation.READ, name="ord", pattern_type=PatternType.PREFIXED)


def made(time: int, binding: AclBinding) -> AclChange:
    return AclChange(time, "User:root", binding, is_made=True)


def removed(time: int, binding: AclBinding) -> AclChange:
    return AclChange(time, "User:carol", binding, is_made=False)


def test_an_acl_existed_from_each_creation_to_the_next_deletion() -> None:
    changes = [made(1, ALTER), removed(5, ALTER), made(7, ALTER), removed(2, READ)]
    assert grants_of(changes, None) == [
        Grant(READ, None, None, 2, "User:carol"),
        Grant(ALTER, 1, "User:root", 5, "User:carol"),
        Grant(ALTER, 7, "User:root"),
    ]


def test_the_brokers_present_acls_take_precedence() -> None:
    assert grants_of([made(1, ALTER)], [READ]) == [Grant(READ)]
    assert grants_of([made(1, ALTER)], [ALTER, READ]) == [Grant(READ), Grant(ALTER, 1, "User:root")]


def test_only_acls_on_changes_can_be_reported_as_unused() -> None:
    assert use_status(Grant(ALTER), 0, None) == UNCHANGED
    assert use_status(Grant(ALTER), 1, None) == USED
    assert use_status(Grant(allow(AclOperation.ALL)), 0, None) == UNCHANGED
    assert use_status(Grant(allow_cluster(AclOperation.CREATE)), 0, None) == UNCHANGED
    for binding in (
        READ,
        allow(AclOperation.DESCRIBE),
        allow(AclOperation.ALL, ResourceType.TRANSACTIONAL_ID),
        allow(AclOperation.READ, ResourceType.GROUP),
    ):
        assert use_status(Grant(binding), 0, None) == NOT_AUDITED


def test_required_permissions_are_those_that_brokers_demand() -> None:
    of_topics = {
        (need.api, need.operation, need.resource_type)
        for need in NEEDS
        if need.kind == "topic" and need.api in ("CreateTopics", "DeleteTopics", "CreatePartitions")
    }
    assert of_topics == {
        ("CreateTopics", AclOperation.CREATE, ResourceType.TOPIC),
        ("CreateTopics", AclOperation.CREATE, ResourceType.CLUSTER),
        ("DeleteTopics", AclOperation.DELETE, ResourceType.TOPIC),
        ("CreatePartitions", AclOperation.ALTER, ResourceType.TOPIC),
    }
    assert all(need.is_own == (need.resource_type is not ResourceType.CLUSTER) for need in NEEDS)


def test_every_audited_request_has_its_required_permissions() -> None:
    audited = {api.name for api in registry.build(barnabas.api).values() if api.audit is not None}
    of_owners = {"RenewDelegationToken", "ExpireDelegationToken"}  # owners and renewers need no permission
    assert audited - of_owners == {need.api for need in NEEDS} - {"Metadata"}


def test_grants_are_classified_by_use_and_by_their_principals_last_activity() -> None:
    grants = [Grant(READ), Grant(ALTER, 1, "User:root")]
    unseen, used = grant_uses(grants, [Use(1, 3, 9)], {"User:bob": 4})
    assert (unseen.uses_count, unseen.last_used, unseen.principal_seen, unseen.status) == (
        0,
        None,
        None,
        NOT_AUDITED,
    )
    assert (used.uses_count, used.last_used, used.status) == (3, 9, USED)


def test_brokers_have_more_information_on_existing_acls() -> None:
    gone = Grant(ALTER, 1, "User:root", 2, "User:root")
    grants = [Grant(READ), Grant(ALTER, 30, "User:root"), gone]
    other = allow(AclOperation.WRITE)
    used, unused, removed = grant_uses(grants, [], {}, AclUse(20, frozenset({READ, other}), {}))
    assert (used.status, used.unused_since) == (USED, None)
    assert (unused.status, unused.unused_since) == (UNUSED, 30)
    assert (removed.status, removed.unused_since) == (UNCHANGED, None)
    [early] = grant_uses([Grant(ALTER, 10, "User:root")], [], {}, AclUse(20, frozenset(), {}))
    assert early.unused_since == 20
    assert advice([early], {}) == [
        "User:alice: ALLOW ALTER_CONFIGS on topic/orders from * is not used; check since when its use has been counted"
    ]


def test_advice_covers_existing_unused_grants_and_missing_permissions() -> None:
    forbidden = deny(AclOperation.ALTER_CONFIGS, name="orders")
    gone = Grant(ALTER._replace(resource_name="gone"), 1, "User:root", 2, "User:root")
    found = grant_uses([Grant(ALTER), Grant(READ), Grant(forbidden), gone], [], {})
    lines = advice(found, {"User:bob": 2, "User:eve": 7})
    assert lines[0].startswith("User:alice: no change used ALLOW ALTER_CONFIGS on topic/orders from *;")
    assert [each.split(": ")[0] for each in lines[1:]] == [
        "User:eve had 7 authorization errors",
        "User:bob had 2 authorization errors",
    ]


def test_an_acl_has_a_readable_form() -> None:
    assert acl_text(READ) == "ALLOW READ on topic/ord* from *"


def test_drift_counts_changed_keys_by_day() -> None:
    days = [
        KeyDay("topic/a", "x", "2026-01-01", "1", "2"),
        KeyDay("topic/b", "x", "2026-01-01", None, "1"),
        KeyDay("topic/a", "x", "2026-01-03", "2", "1"),
        KeyDay("topic/c", "y", "2026-01-03", "7", "7"),
        KeyDay("topic/a", "x", "2026-01-04", "1", "3"),
    ]
    assert drift_of(reversed(days)) == [
        DriftCount("2026-01-01", 2, 2),
        DriftCount("2026-01-03", 1, 2),
        DriftCount("2026-01-04", 2, 1),
    ]
