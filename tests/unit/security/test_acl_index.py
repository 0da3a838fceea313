"""ACL decisions, compared with a slow implementation of Kafka's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from barnabas.security.acl_index import AclIndex, decide, decide_any
from barnabas.wire.acls import AclBinding, AclPermission, PatternType, ResourceType
from barnabas.wire.acls import AclOperation as Op
from support.acls import ALICE, allow, deny

ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
PREFIXED = PatternType.PREFIXED


def index_of(*bindings: AclBinding) -> AclIndex:
    index = AclIndex()
    for binding in bindings:
        index.add(binding)
    return index


def decided(*bindings: AclBinding, operation: Op = Op.READ, name: str = "t") -> AclPermission | None:
    return decide(index_of(*bindings), ALICE, "10.0.0.1", operation, name)[0]


def test_a_missing_acl_differs_from_a_denial() -> None:
    assert decided() is None
    assert decided(allow(Op.READ, name="other")) is None
    assert decided(allow(Op.READ, principal="User:bob")) is DENY
    assert decided(allow(Op.READ, name="*", principal="User:bob")) is DENY


@pytest.mark.parametrize(
    "binding",
    [
        allow(Op.READ),
        allow(Op.ALL),
        allow(Op.READ, name="*"),
        allow(Op.READ, principal="User:*"),
        allow(Op.READ, host="10.0.0.1"),
        allow(Op.READ, name="t", pattern_type=PREFIXED),
    ],
)
def test_matching_acls_allow(binding: AclBinding) -> None:
    assert decided(binding) is ALLOW


@pytest.mark.parametrize(
    "binding",
    [
        allow(Op.WRITE),
        allow(Op.READ, host="10.0.0.2"),
        allow(Op.READ, principal="Group:alice"),
        allow(Op.READ, name="t", pattern_type=PREFIXED, principal="User:bob"),
    ],
)
def test_other_acls_do_not_allow(binding: AclBinding) -> None:
    assert decided(binding) is DENY


def test_a_prefix_must_start_the_name_and_a_star_in_it_is_literal() -> None:
    assert decided(allow(Op.READ, name="te", pattern_type=PREFIXED)) is None
    assert decided(allow(Op.READ, name="*", pattern_type=PREFIXED)) is None


@pytest.mark.parametrize(
    "denying",
    [
        deny(Op.READ),
        deny(Op.ALL),
        deny(Op.READ, name="*"),
        deny(Op.READ, principal="User:*"),
        deny(Op.READ, name="t", pattern_type=PREFIXED),
    ],
)
def test_deny_overrides_allow(denying: AclBinding) -> None:
    assert decided(allow(Op.READ), allow(Op.READ, name="*"), denying, allow(Op.ALL)) is DENY


@pytest.mark.parametrize("operation", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER])
def test_read_write_delete_and_alter_imply_describe_but_denials_imply_nothing(operation: Op) -> None:
    assert decided(allow(operation), operation=Op.DESCRIBE) is ALLOW
    assert decided(allow(operation), operation=Op.DESCRIBE_CONFIGS) is DENY
    assert decided(allow(Op.DESCRIBE), deny(operation), operation=Op.DESCRIBE) is ALLOW


def test_alter_configs_implies_describe_configs() -> None:
    assert decided(allow(Op.ALTER_CONFIGS), operation=Op.DESCRIBE_CONFIGS) is ALLOW
    assert decided(allow(Op.ALTER_CONFIGS), operation=Op.DESCRIBE) is DENY


@pytest.mark.parametrize("written", ["0:0:0:0:0:0:0:1", "::1", "0::1"])
def test_addresses_match_in_every_notation(written: str) -> None:
    binding = allow(Op.READ, host=written)
    index = index_of(binding)
    assert decide(index, ALICE, "::1", Op.READ, "t")[0] is ALLOW
    index.remove(binding)
    assert decide(index, ALICE, "::1", Op.READ, "t")[0] is None


def test_a_removed_acl_no_longer_applies() -> None:
    bindings = [allow(Op.READ), allow(Op.READ, name="t", pattern_type=PREFIXED), allow(Op.WRITE)]
    index = index_of(*bindings)
    for binding in bindings[:2]:
        index.remove(binding)
    assert decide(index, ALICE, "h", Op.READ, "t")[0] is DENY
    index.remove(bindings[2])
    assert decide(index, ALICE, "h", Op.READ, "t")[0] is None
    assert index.applying("t") == []


@pytest.mark.parametrize(
    ("bindings", "any_one"),
    [
        ([], False),
        ([allow(Op.WRITE)], True),
        ([allow(Op.ALL)], True),
        ([allow(Op.WRITE, principal="User:bob")], False),
        ([allow(Op.WRITE, host="10.0.0.2")], False),
        ([allow(Op.READ)], False),
        ([allow(Op.WRITE, name="*"), deny(Op.WRITE, name="x")], True),
        ([allow(Op.WRITE, name="*"), deny(Op.WRITE, name="*")], False),
        ([allow(Op.WRITE), deny(Op.WRITE)], False),
        ([allow(Op.WRITE), deny(Op.WRITE, name="t", pattern_type=PREFIXED)], False),
        ([allow(Op.WRITE, name="ab", pattern_type=PREFIXED), deny(Op.WRITE, name="ab")], True),
        (
            [
                allow(Op.WRITE, name="ab", pattern_type=PREFIXED),
                deny(Op.WRITE, name="a", pattern_type=PREFIXED),
            ],
            False,
        ),
        (
            [
                allow(Op.WRITE, name="a", pattern_type=PREFIXED),
                deny(Op.WRITE, name="ab", pattern_type=PREFIXED),
            ],
            True,
        ),
        ([allow(Op.WRITE), deny(Op.WRITE, principal="User:*")], False),
    ],
)
def test_any_resource_is_sufficient_unless_each_allow_is_covered_by_a_deny(
    bindings: list[AclBinding], any_one: bool
) -> None:
    assert decide_any(index_of(*bindings), ALICE, "10.0.0.1", Op.WRITE) is any_one


OPERATIONS = (Op.ALL, Op.READ, Op.DESCRIBE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS)
BINDINGS = some.builds(
    AclBinding,
    some.just(ResourceType.TOPIC),
    some.sampled_from(["*", "a", "ab", "b"]),
    some.sampled_from([PatternType.LITERAL, PREFIXED]),
    some.sampled_from([ALICE, "User:bob", "User:*"]),
    some.sampled_from(["*", "1", "2"]),
    some.sampled_from(OPERATIONS),
    some.sampled_from([ALLOW, DENY]),
)


def read_slowly(bindings: set[AclBinding], host: str, operation: Op, name: str) -> AclPermission | None:
    def applies(acl: AclBinding) -> bool:
        if acl.pattern_type is PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in ("*", name)

    applying = [acl for acl in bindings if applies(acl)]
    mine = [acl for acl in applying if acl.principal in (ALICE, "User:*") and acl.host in ("*", host)]
    granting = {operation, Op.ALL}
    if any(acl.permission is DENY and acl.operation in granting for acl in mine):
        return DENY
    if operation is Op.DESCRIBE:
        granting |= {Op.READ, Op.WRITE, Op.DELETE, Op.ALTER}
    if operation is Op.DESCRIBE_CONFIGS:
        granting.add(Op.ALTER_CONFIGS)
    if any(acl.permission is ALLOW and acl.operation in granting for acl in mine):
        return ALLOW
    return DENY if applying else None


@given(
    some.sets(BINDINGS, max_size=6),
    some.sets(BINDINGS, max_size=3),
    some.sampled_from(OPERATIONS[1:]),
    some.sampled_from(["a", "ab", "abc", "b", "c"]),
)
def test_the_index_decides_like_a_scan_of_every_acl(
    kept: set[AclBinding], removed: set[AclBinding], operation: Op, name: str
) -> None:
    index = index_of(*kept, *(removed - kept))
    for binding in removed - kept:
        index.remove(binding)
    assert decide(index, ALICE, "1", operation, name)[0] is read_slowly(kept, "1", operation, name)


def used(*bindings: AclBinding, operation: Op) -> set[AclBinding]:
    return set(decide(index_of(*bindings), ALICE, "10.0.0.1", operation, "t")[1])


def test_a_decision_uses_each_acl_that_is_sufficient_alone() -> None:
    own, wildcard = allow(Op.READ), allow(Op.ALL, name="*", principal="User:*")
    others = (allow(Op.WRITE), allow(Op.READ, host="10.0.0.2"), allow(Op.READ, principal="User:bob"))
    assert used(own, wildcard, *others, operation=Op.READ) == {own, wildcard}
    forbidding = deny(Op.READ, name="t", pattern_type=PREFIXED)
    assert used(own, wildcard, forbidding, operation=Op.READ) == {forbidding}
    assert used(*others, operation=Op.READ) == set()


def test_an_implied_permission_is_used_only_if_no_other_acl_allows() -> None:
    reading, writing, describing = allow(Op.READ), allow(Op.WRITE), allow(Op.DESCRIBE)
    assert used(reading, operation=Op.DESCRIBE) == {reading}
    assert used(reading, writing, operation=Op.DESCRIBE) == set()
    assert used(reading, writing, describing, operation=Op.DESCRIBE) == {describing}
