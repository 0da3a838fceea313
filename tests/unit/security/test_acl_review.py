import itertools
from random import Random

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.metadata.acls import acl_key
from barnabas.security.acl_review import AclQuestion, effective, explain
from barnabas.security.acl_use import AclUseRecord
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.security.operations import OPERATIONS
from barnabas.wire.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from support.acls import ALICE, allow, deny

READ, WRITE, DESCRIBE, TOPIC = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    ResourceType.TOPIC,
)
PREFIXED = PatternType.PREFIXED


def question(operation: AclOperation = READ, name: str = "orders", host: str = WILDCARD) -> AclQuestion:
    return AclQuestion(ALICE, operation, TOPIC, name, host)


def test_the_acl_that_allows_something_is_named() -> None:
    own, other = allow(READ, name="orders"), allow(WRITE, name="orders")
    found = explain([own, other], question())
    assert (found.is_allowed, found.deciding, found.others) == (True, (own,), ())
    assert found.reason == "an ACL allows it, and none forbids it"


def test_an_implied_permission_decides_if_no_other_does() -> None:
    read = allow(READ, name="orders")
    assert explain([read], question(DESCRIBE)).deciding == (read,)
    exact = allow(DESCRIBE, name="orders")
    found = explain([read, exact], question(DESCRIBE))
    assert (found.deciding, found.others) == ((exact,), (read,))


def test_an_acl_that_forbids_takes_precedence_over_all_that_allow() -> None:
    allowing = allow(READ, name="orders")
    forbidding = deny(AclOperation.ALL, name="*", principal="User:*")
    found = explain([allowing, forbidding], question())
    assert (found.is_allowed, found.deciding, found.others) == (False, (forbidding,), (allowing,))
    assert found.reason == "an ACL forbids it, which takes precedence"


def test_the_reason_shows_whether_any_acl_applies() -> None:
    assert explain([], question()).reason == "no ACL applies to the resource"
    found = explain([allow(WRITE, name="orders")], question())
    assert (found.is_allowed, found.deciding) == (False, ())
    assert found.reason == "ACLs apply to the resource, but none allows it"


def test_acls_for_an_address_count_for_that_address_only() -> None:
    local = allow(READ, name="orders")._replace(host="0:0:0:0:0:0:0:1")
    assert not explain([local], question()).is_allowed
    assert explain([local], question(host="::1")).deciding == (local,)


def test_changing_the_audit_topic_needs_alter_on_the_cluster_too() -> None:
    write = allow(WRITE, name="*")
    found = explain([write], question(WRITE, AUDIT_TOPIC))
    assert not found.is_allowed
    assert found.reason.startswith(f"changing {AUDIT_TOPIC} needs ALTER on the cluster, too: no ACL applies")
    alter = AclBinding(
        ResourceType.CLUSTER,
        CLUSTER_NAME,
        PatternType.LITERAL,
        ALICE,
        "*",
        AclOperation.ALTER,
        AclPermission.ALLOW,
    )
    found = explain([write, alter], question(WRITE, AUDIT_TOPIC))
    assert (found.is_allowed, found.deciding) == (True, (write, alter))


def random_acls(rng: Random) -> list[AclBinding]:
    acls = {
        AclBinding(
            TOPIC,
            rng.choice(["a", "ab", "abc", "*"]),
            rng.choice([PatternType.LITERAL, PREFIXED]),
            rng.choice([ALICE, "User:bob", "User:*"]),
            rng.choice(["*", "10.0.0.1"]),
            rng.choice([READ, WRITE, DESCRIBE, AclOperation.ALL]),
            rng.choice([AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY]),
        )
        for _ in range(rng.randint(0, 6))
    }
    return sorted(acl for acl in acls if acl.resource_name != "*" or acl.pattern_type is PatternType.LITERAL)


def allows(acls: list[AclBinding], asked: AclQuestion) -> bool:
    authorizer = StandardAuthorizer(
        {acl_key(acl): acl for acl in acls},
        (),
        allow_if_no_acl=False,
        clock=ManualClock(),
        use=AclUseRecord.empty(0),
    )
    return authorizer.known(asked.principal, asked.host, asked.operation, asked.resource_type, asked.name)


@pytest.mark.parametrize("seed", range(300))
def test_explanations_and_permissions_agree_with_the_authorizer(seed: int) -> None:
    acls = random_acls(Random(seed))
    permissions = effective(acls, ALICE)
    for name, operation, host in itertools.product(
        ["a", "ab", "abcd", "x"], OPERATIONS[TOPIC], ["*", "10.0.0.1"]
    ):
        asked = question(operation, name, host)
        is_allowed = allows(acls, asked)
        assert explain(acls, asked).is_allowed is is_allowed
        granted = [
            each
            for each in permissions
            if operation in each.operations
            and each.host in ("*", host)
            and matches(each.pattern_type, each.name, name)
        ]
        excepted = [deny for each in granted for deny in each.exceptions if forbids(deny, asked)]
        assert (bool(granted) and not excepted) is is_allowed, (acls, asked)


def matches(pattern_type: PatternType, pattern: str, name: str) -> bool:
    return name.startswith(pattern) if pattern_type is PREFIXED else pattern in (name, "*")


def forbids(acl: AclBinding, asked: AclQuestion) -> bool:
    return (
        acl.host in ("*", asked.host)
        and acl.operation in (asked.operation, AclOperation.ALL)
        and matches(acl.pattern_type, acl.resource_name, asked.name)
    )
