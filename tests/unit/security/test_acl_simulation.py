from collections.abc import Iterable

from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.security.acl_simulation import Simulation, simulate
from barnabas.wire.acls import (
    AclBinding,
    AclDecision,
    AclOperation,
    DecisionRecord,
    PatternType,
    ResourceType,
)
from support.acls import ALICE, ROOT, allow, allow_cluster, deny

READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
BOB = "User:bob"


def decision(
    operation: AclOperation = READ,
    name: str | None = "t",
    principal: str = ALICE,
    *,
    host: str = "10.0.0.1",
    allowed: bool = True,
) -> AclDecision:
    return AclDecision(principal, host, operation, TOPIC, name, allowed, 7)


def simulated(decisions: Iterable[AclDecision], *acls: AclBinding, if_no_acl: bool = False) -> Simulation:
    record = DecisionRecord(0, decisions, super_users=frozenset({ROOT}), allows_if_no_acl=if_no_acl)
    return simulate(record, acls)


def test_what_was_allowed_and_would_be_refused_is_found() -> None:
    reading, writing = decision(READ), decision(WRITE)
    assert simulated([writing, reading], allow(READ), allow(WRITE)) == ([], [])
    assert simulated([writing, reading], allow(READ)) == ([writing], [])
    assert simulated([writing, reading], allow(READ), allow(WRITE), deny(READ, host="10.0.0.1")) == (
        [reading],
        [],
    )


def test_what_was_refused_is_found_only_if_it_would_be_allowed() -> None:
    refused = [decision(READ, allowed=False), decision(WRITE, allowed=False)]
    assert simulated(refused, allow(READ)) == ([], refused[:1])


def test_decisions_follow_hosts_prefixes_and_implied_operations() -> None:
    near, far = decision(host="10.0.0.1"), decision(host="10.0.0.2")
    assert simulated([near, far], allow(READ, host="10.0.0.1")).refused == [far]
    described = [decision(AclOperation.DESCRIBE, name) for name in ("orders", "other")]
    prefix = allow(WRITE, name="ord", pattern_type=PatternType.PREFIXED)
    assert simulated(described, prefix).refused == described[1:]


def test_super_users_are_allowed_and_resources_without_acls_follow_the_setting() -> None:
    decisions = [decision(principal=ROOT), decision(principal=BOB, name="free"), decision(principal=BOB)]
    assert simulated(decisions, allow(READ), if_no_acl=True).refused == decisions[2:]
    assert simulated(decisions, allow(READ)).refused == decisions[1:]


def test_the_right_to_write_to_any_topic_is_simulated_too() -> None:
    anywhere = decision(WRITE, None)
    assert simulated([anywhere], allow(WRITE, name="one")).refused == []
    assert simulated([anywhere], allow(READ, name="one")).refused == [anywhere]


def test_changing_the_audit_topic_needs_alter_on_the_cluster() -> None:
    deleting = decision(AclOperation.DELETE, AUDIT_TOPIC)
    assert simulated([deleting], allow(AclOperation.ALL, name="*")).refused == [deleting]
    acls = allow(AclOperation.ALL, name="*"), allow_cluster(AclOperation.ALTER)
    assert simulated([deleting], *acls).refused == []


def test_decisions_are_sorted_by_principal_and_resource() -> None:
    decisions = [decision(principal=BOB), decision(WRITE, "a"), decision(READ, "b"), decision(READ, "a")]
    assert simulated(decisions).refused == [decisions[3], decisions[1], decisions[2], decisions[0]]
