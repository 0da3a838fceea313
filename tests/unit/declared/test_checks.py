"""Diagnostics of planned changes."""

import math
import random

import pytest

from barnabas.client.producer.partitioner import partition_for_key
from barnabas.declared.checks import (
    Applicant,
    acls_after,
    check_changes,
    lowered,
    moved_share,
    with_lockout,
    with_own_user,
)
from barnabas.declared.diff import ChangeAction, Level, ResourceChange, diff_states
from barnabas.declared.plan import Plan
from barnabas.declared.state import (
    BrokerState,
    ClusterState,
    Credential,
    SecretRef,
    Section,
    TopicState,
)
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.scram import ScramMechanism
from support.acls import allow


@pytest.mark.parametrize(("before", "after"), [(1, 2), (12, 24), (12, 18), (3, 7), (10, 100), (6, 8)])
def test_the_share_of_moved_keys_matches_the_partitioner(before: int, after: int) -> None:
    rng = random.Random(before * after)
    keys = [rng.randbytes(9) for _ in range(4000)]
    moved = sum(partition_for_key(key, before) != partition_for_key(key, after) for key in keys)
    assert math.isclose(moved / len(keys), moved_share(before, after), abs_tol=0.03)


def diagnostics(before: TopicState, after: TopicState) -> dict[str, tuple[Level, str]]:
    live, declared = ClusterState(topics={"t": before}), ClusterState(topics={"t": after})
    found = check_changes(diff_states(declared, live), live)
    return {
        each.key: (each.level, " ".join(diagnostic.text for diagnostic in each.diagnostics)) for each in found
    }


def test_adding_partitions_reports_how_many_keys_move() -> None:
    level, text = diagnostics(TopicState(2), TopicState(4))["partitions"]
    assert (level, text) == (
        Level.NOTE,
        "50% of keys will move to another partition, without their earlier records",
    )
    level, text = diagnostics(TopicState(2, None, {"cleanup.policy": "delete,compact"}), TopicState(3))[
        "partitions"
    ]
    assert level is Level.WARNING
    assert text.startswith("67% of keys")
    assert text.endswith("see 'barnabas jobs rekey'")


@pytest.mark.parametrize("prunes", [False, True])
def test_acls_after_a_plan_are_the_declared_ones_and_unless_pruned_the_others(prunes: bool) -> None:
    old, kept, new = allow(AclOperation.READ), allow(AclOperation.WRITE), allow(AclOperation.DELETE)
    live = ClusterState(acls=frozenset({old, kept}), topics={"t": TopicState(2)})
    declared = ClusterState(
        acls=frozenset({kept, new}),
        topics={"t": TopicState(3)},
        prune=frozenset({Section.ACLS} if prunes else ()),
    )
    after = acls_after(live.acls, diff_states(declared, live))
    assert after == ({kept, new} if prunes else {old, kept, new})


def test_changes_without_a_request_are_impossible() -> None:
    found = diagnostics(TopicState(4, 1), TopicState(2, 3))
    assert {level for level, _ in found.values()} == {Level.IMPOSSIBLE}
    assert found["partitions"][1].startswith("the number of partitions cannot be reduced from 4")


@pytest.mark.parametrize(
    ("before", "after", "level"),
    [("delete", "compact", 2), ("compact", "delete", 2), ("delete", "compact,delete", 2), ("a", None, 2)],
)
def test_another_cleanup_policy_is_destructive(before: str, after: str | None, level: int) -> None:
    topics = (TopicState(1, None, {"cleanup.policy": value}) for value in (before, after))
    assert diagnostics(*topics)["cleanup.policy"][0] == level


@pytest.mark.parametrize(
    ("before", "after", "limit"),
    [
        ("1000", "500", 500),
        ("500", "1000", None),
        ("-1", "500", 500),
        ("500", "-1", None),
        (None, "500", 500),
        (None, "-1", None),
        ("500", None, None),
        ("500", "soon", None),
    ],
)
def test_a_limit_lower_than_before_is_destructive(
    before: str | None, after: str | None, limit: int | None
) -> None:
    for key in ("retention.ms", "retention.bytes"):
        action = ChangeAction.CREATE if before is None else ChangeAction.ALTER
        assert lowered(ResourceChange(Section.TOPICS, "t", key, action, before, after)) == limit
    assert (
        lowered(ResourceChange(Section.TOPICS, "t", "segment.ms", ChangeAction.ALTER, before, after)) is None
    )
    assert (
        lowered(ResourceChange(Section.GROUPS, "t", "retention.ms", ChangeAction.ALTER, before, after))
        is None
    )


def test_a_new_user_needs_a_password() -> None:
    mechanism = ScramMechanism.SCRAM_SHA_256
    for password, level in ((None, Level.IMPOSSIBLE), (SecretRef("env", "X"), Level.NOTE)):
        declared = ClusterState(users={"alice": {mechanism: Credential(None, password)}})
        [change] = check_changes(diff_states(declared, ClusterState()), ClusterState())
        assert change.level is level


# Lockout

CLUSTER = (ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)
MINE = AclBinding(*CLUSTER, "User:me", "*", AclOperation.ALTER, AclPermission.ALLOW)
ALL = AclBinding(*CLUSTER, "User:*", "*", AclOperation.ALL, AclPermission.ALLOW)
DENIED = AclBinding(*CLUSTER, "User:*", "*", AclOperation.ALTER, AclPermission.DENY)
OTHER = AclBinding(*CLUSTER, "User:other", "*", AclOperation.ALTER, AclPermission.ALLOW)
READS = AclBinding(*CLUSTER, "User:me", "*", AclOperation.DESCRIBE, AclPermission.ALLOW)


@pytest.mark.parametrize(
    ("before", "after", "applicant", "locked"),
    [
        ({MINE, READS}, {READS}, Applicant("User:me"), True),
        ({MINE, OTHER}, {MINE}, Applicant("User:me"), False),
        ({MINE, ALL}, {ALL}, Applicant("User:me"), False),
        ({MINE}, {MINE, DENIED}, Applicant("User:me"), True),
        ({MINE}, set(), Applicant("User:me", may_alter=False), False),
        ({OTHER}, set(), Applicant("User:me"), False),
        (set(), {OTHER}, Applicant("User:me", open_without_acl=True), True),
        (set(), {OTHER}, Applicant("User:me"), False),
        (set(), {OTHER, MINE}, Applicant("User:me", open_without_acl=True), False),
    ],
)
def test_losing_the_own_alter_permission_is_reported(
    before: set[AclBinding], after: set[AclBinding], applicant: Applicant, locked: bool
) -> None:
    live = ClusterState(acls=frozenset(before))
    changes = diff_states(ClusterState(acls=frozenset(after), prune=frozenset({"acls"})), live)
    found = with_lockout(changes, live, applicant)
    assert {each.level for each in found if each.level} == ({Level.LOCKOUT} if locked else set())


@pytest.mark.parametrize(
    ("before", "after", "applicant", "locked"),
    [
        ({OTHER, READS}, {READS}, Applicant(None), {OTHER}),
        ({ALL}, set(), Applicant(None), {ALL}),
        ({OTHER, READS}, {OTHER}, Applicant(None), set()),
        (set(), {DENIED, OTHER}, Applicant(None), {DENIED}),
        ({DENIED}, set(), Applicant(None), set()),
        ({OTHER}, set(), Applicant(None, may_alter=False), set()),
        (set(), {READS}, Applicant(None, open_without_acl=True), {READS}),
        ({OTHER}, {OTHER, READS}, Applicant(None, open_without_acl=True), set()),
    ],
)
def test_all_changes_that_may_lock_out_an_unknown_principal_are_reported(
    before: set[AclBinding], after: set[AclBinding], applicant: Applicant, locked: set[AclBinding]
) -> None:
    live = ClusterState(acls=frozenset(before))
    changes = diff_states(ClusterState(acls=frozenset(after), prune=frozenset({"acls"})), live)
    found = with_lockout(changes, live, applicant)
    assert {each.name for each in found if each.level is Level.LOCKOUT} == locked


def test_removing_the_own_credential_is_reported() -> None:
    live = ClusterState(
        users={name: {ScramMechanism.SCRAM_SHA_256: Credential(4096)} for name in ("me", "other")}
    )
    changes = with_own_user(diff_states(ClusterState(prune=frozenset({"users"})), live), "User:me")
    assert {each.name for each in changes if each.level is Level.LOCKOUT} == {"me"}


def test_a_change_can_be_destructive_and_a_lockout() -> None:
    live = ClusterState(users={"me": {ScramMechanism.SCRAM_SHA_256: Credential(4096)}})
    differences = diff_states(ClusterState(prune=frozenset({"users"})), live)
    plan = Plan(with_own_user(check_changes(differences, live), "User:me"))
    assert (plan.counts["destructive"], plan.counts["lockout"]) == (1, 1)


@pytest.mark.parametrize(
    ("key", "before", "after", "destroys"),
    [
        ("log.retention.ms", None, "1", True),
        ("log.retention.ms", "2", "1", True),
        ("log.retention.ms", "1", "2", False),
        ("log.retention.ms", "-1", "2", True),
        ("log.retention.ms", "2", "-1", False),
        ("log.retention.bytes", "2", None, True),
        ("log.cleanup.policy", None, "compact", True),
        ("log.cleaner.threads", "2", "1", False),
    ],
)
@pytest.mark.parametrize("name", ["", "1"])
def test_inherited_broker_configs_are_as_destructive_as_topic_configs(
    name: str, key: str, before: str | None, after: str | None, destroys: bool
) -> None:
    live = ClusterState(brokers={name: BrokerState({} if before is None else {key: before})})
    declared = ClusterState(brokers={name: BrokerState({key: after})})
    [change] = check_changes(diff_states(declared, live), live)
    assert change.is_destructive is destroys
