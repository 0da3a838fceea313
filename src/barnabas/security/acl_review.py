"""Explains what ACLs allow: which of them decide, and what a principal may do in all. Pure functions of the ACLs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.security.acl_index import AclIndex, canonical_address, decide
from barnabas.security.operations import OPERATIONS, needs_cluster_alter
from barnabas.wire.acls import (
    CLUSTER_NAME,
    FORBIDDING,
    GRANTING,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)


class AclQuestion(NamedTuple):
    """What a principal wants to do. The host `*` stands for one that no ACL names."""

    principal: str
    operation: AclOperation
    resource_type: ResourceType
    name: str
    host: str = WILDCARD


class Explanation(NamedTuple):
    """Whether something is allowed, and why."""

    is_allowed: bool
    reason: str
    deciding: tuple[AclBinding, ...]  #: the ACLs that decide
    others: tuple[AclBinding, ...]  #: further ACLs for this operation, which make no difference


def explain(acls: Sequence[AclBinding], question: AclQuestion) -> Explanation:
    """Explain a decision of the authorizer. Super users, and `allow.everyone.if.no.acl.found`, are not considered."""
    index = AclIndex()
    original = {id(index.add(acl)): acl for acl in acls if acl.resource_type is question.resource_type}
    host = canonical_address(question.host)
    permission, by = decide(index, question.principal, host, question.operation, question.name)
    deciding = tuple(original[id(entry)] for entry in by)
    others = tuple(sorted(acl for acl in _concerning(index, original, question, host) if acl not in deciding))
    needs_more = needs_cluster_alter(question.operation, question.resource_type, question.name)
    if permission is AclPermission.ALLOW and needs_more:
        return _with_cluster_alter(acls, question, deciding)
    return Explanation(permission is AclPermission.ALLOW, _reason(permission, deciding), deciding, others)


def _with_cluster_alter(
    acls: Sequence[AclBinding], question: AclQuestion, deciding: tuple[AclBinding, ...]
) -> Explanation:
    cluster = AclQuestion(
        question.principal, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME, question.host
    )
    found = explain(acls, cluster)
    reason = f"changing {question.name} needs ALTER on the cluster, too: {found.reason}"
    return Explanation(found.is_allowed, reason, (*deciding, *found.deciding), found.others)


def _concerning(
    index: AclIndex, original: dict[int, AclBinding], question: AclQuestion, host: str
) -> Iterable[AclBinding]:
    """Yield the ACLs that allow or forbid what is asked."""
    for entries in index.applying(question.name):
        for principal in (question.principal, WILDCARD_PRINCIPAL):
            for entry in entries.get(principal, ()):
                wanted = FORBIDDING if entry.permission is AclPermission.DENY else GRANTING
                if entry.host in (WILDCARD, host) and entry.operation in wanted[question.operation]:
                    yield original[id(entry)]


def _reason(permission: AclPermission | None, deciding: Sequence[AclBinding]) -> str:
    if permission is None:
        return "no ACL applies to the resource"
    if permission is AclPermission.ALLOW:
        return "an ACL allows it, and none forbids it"
    return (
        "an ACL forbids it, which takes precedence"
        if deciding
        else "ACLs apply to the resource, but none allows it"
    )


class Permissions(NamedTuple):
    """What a principal may do on the resources of a pattern."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType
    host: str
    operations: tuple[AclOperation, ...]  #: with those that are implied
    exceptions: tuple[AclBinding, ...]  #: DENY ACLs for a part of these resources or hosts


def effective(acls: Sequence[AclBinding], principal: str) -> list[Permissions]:
    """Return what ACLs allow a principal, by resource pattern; what a DENY covers wholly is left out."""
    own = [acl for acl in acls if acl.principal in (principal, WILDCARD_PRINCIPAL)]
    denying = [acl for acl in own if acl.permission is AclPermission.DENY]
    allowed: defaultdict[tuple[ResourceType, str, PatternType, str], set[AclOperation]] = defaultdict(set)
    for acl in own:
        if acl.permission is AclPermission.ALLOW:
            pattern = acl.resource_type, acl.resource_name, acl.pattern_type, acl.host
            allowed[pattern] |= {
                asked for asked in OPERATIONS[acl.resource_type] if acl.operation in GRANTING[asked]
            }
    found = []
    for (kind, name, pattern_type, host), operations in sorted(allowed.items()):
        granted = AclBinding(kind, name, pattern_type, principal, host, AclOperation.ALL, AclPermission.ALLOW)
        left = {each for each in operations if not any(_covers(deny, granted, each) for deny in denying)}
        exceptions = tuple(
            deny
            for deny in denying
            if _overlaps(deny, granted) and any(deny.operation in FORBIDDING[each] for each in left)
        )
        if left:
            found.append(Permissions(kind, name, pattern_type, host, tuple(sorted(left)), exceptions))
    return found


def _covers(deny: AclBinding, granted: AclBinding, operation: AclOperation) -> bool:
    """Whether a DENY forbids an operation on all resources and hosts of an ALLOW."""
    return (
        deny.resource_type is granted.resource_type
        and deny.operation in FORBIDDING[operation]
        and deny.host in (WILDCARD, granted.host)
        and _contains(deny, granted)
    )


def _contains(wider: AclBinding, narrower: AclBinding) -> bool:
    """Whether a pattern matches all names of another."""
    if wider.pattern_type is PatternType.PREFIXED:
        is_every_name = narrower.pattern_type is PatternType.LITERAL and narrower.resource_name == WILDCARD
        return not is_every_name and narrower.resource_name.startswith(wider.resource_name)
    if wider.resource_name == WILDCARD:
        return True
    return narrower.pattern_type is PatternType.LITERAL and narrower.resource_name == wider.resource_name


def _overlaps(deny: AclBinding, granted: AclBinding) -> bool:
    """Whether a DENY concerns a part of an ALLOW."""
    is_same_host = WILDCARD in (deny.host, granted.host) or deny.host == granted.host
    is_related = _contains(deny, granted) or _contains(granted, deny)
    return deny.resource_type is granted.resource_type and is_same_host and is_related
