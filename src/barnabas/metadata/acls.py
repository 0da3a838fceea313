"""ACLs: who may, or may not, do what to which resources; made and removed by binding and by filter."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordType, Table
from barnabas.metadata.store import StoreChange
from barnabas.wire.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from barnabas.wire.errors import ErrorCode, KafkaError

#: As many as Apache Kafka lets one request make, or remove (`QuorumController.MAX_RECORDS_PER_USER_OP`).
CREATED_COUNT_MAX = REMOVED_COUNT_MAX = 10_000

#: Filters of a request times ACLs that they are compared with, which takes about five seconds in a thread of its own.
COMPARED_COUNT_MAX = 10_000_000

_PATTERN_TYPES = (PatternType.LITERAL, PatternType.PREFIXED)
_PERMISSIONS = (AclPermission.DENY, AclPermission.ALLOW)


def _from_plain(plain: Any) -> AclBinding:
    resource_type, name, pattern_type, principal, host, operation, permission = plain
    return AclBinding(
        ResourceType(resource_type),
        name,
        PatternType(pattern_type),
        principal,
        host,
        AclOperation(operation),
        AclPermission(permission),
    )


ACLS: RecordType[AclBinding] = RecordType("acls", list, _from_plain)


def acl_key(binding: AclBinding) -> str:
    """The key of a binding: all that it says, so that no ACL is there twice."""
    return json.dumps(binding, separators=(",", ":"))


#: Raises KafkaError for an ACL that must not be made, or removed.
Check = Callable[[AclBinding], None]


def _allow_all(_binding: AclBinding) -> None:
    pass


def decide_create_acls(
    table: Table[AclBinding], requested: Sequence[AclBinding], check: Check = _allow_all
) -> Decision[list[KafkaError | None]]:
    """Make each ACL; one that is there already is as good as made. INVALID_REQUEST for what makes no sense."""
    outcomes: list[KafkaError | None] = []
    changes: dict[str, StoreChange] = {}
    for binding in requested:
        key = acl_key(binding)
        try:
            _check(binding)
            if key not in table:
                check(binding)
        except KafkaError as error:
            outcomes.append(error.kept())
            continue
        outcomes.append(None)
        if key not in table:
            changes[key] = ACLS.put(key, binding)
    if len(changes) > CREATED_COUNT_MAX:
        message = f"The request makes {len(changes)} ACLs: at most {CREATED_COUNT_MAX} can be made at once."
        raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
    reads = {ACLS.key(key): table.revision(key) for key in changes}
    return Decision(outcomes, tuple(changes.values()), reads)


def _check(binding: AclBinding) -> None:
    why = _objection(binding)
    if why:
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)


def _objection(binding: AclBinding) -> str:
    """What is wrong with an ACL that is to be made; empty if nothing is."""
    name = binding.resource_name
    if binding.resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        return f"The resource name '{name}' is invalid: the only one of type CLUSTER is '{CLUSTER_NAME}'."
    if not name:
        return "The resource name is empty: it must name a resource, be a prefix, or '*' for all."
    if binding.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return (
            f"The resource type {binding.resource_type.name} is for filters: an ACL needs one resource type."
        )
    if binding.pattern_type not in _PATTERN_TYPES:
        return f"The pattern type {binding.pattern_type.name} is for filters: an ACL is LITERAL or PREFIXED."
    if binding.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        return f"The operation {binding.operation.name} is for filters: an ACL needs one operation, or ALL."
    if binding.permission not in _PERMISSIONS:
        return f"The permission {binding.permission.name} is for filters: an ACL is DENY or ALLOW."
    if ":" not in binding.principal:
        return f"The principal '{binding.principal}' has no colon: Type:name is expected, as User:alice."
    return ""


def matching(table: Table[AclBinding], wanted: AclFilter) -> list[AclBinding]:
    """The ACLs that a filter means."""
    return [binding for binding in table.values() if wanted.matches(binding)]


class Removed(NamedTuple):
    """An ACL that a filter matched, and why it stays if it does."""

    binding: AclBinding
    error: KafkaError | None = None


def decide_delete_acls(
    table: Table[AclBinding], filters: Iterable[AclFilter], check: Check = _allow_all
) -> Decision[list[list[Removed]]]:
    """Remove what each filter matches; an ACL that several match is in the answer to each.

    :raises KafkaError: INVALID_REQUEST when that is too much for one request.
    """
    filters = list(filters)
    found_by = _matches(table, dict.fromkeys(filters))
    matches = [found_by[wanted] for wanted in filters]
    removed = {binding: _removed(binding, check) for found in matches for binding in found}
    outcomes = [[removed[binding] for binding in found] for found in matches]
    keys = [acl_key(binding) for binding, outcome in removed.items() if outcome.error is None]
    if len(keys) > REMOVED_COUNT_MAX:
        message = f"The filters match {len(keys)} ACLs: at most {REMOVED_COUNT_MAX} can be removed at once."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    reads = {ACLS.key(key): table.revision(key) for key in keys}
    return Decision(outcomes, tuple(ACLS.remove(key) for key in keys), reads)


def _matches(table: Table[AclBinding], filters: Collection[AclFilter]) -> dict[AclFilter, list[AclBinding]]:
    """Return what each filter matches; those that can match one ACL alone find it by its key."""
    exact = {wanted: wanted.binding for wanted in filters}
    compared_count = len(table) * sum(binding is None for binding in exact.values())
    if compared_count > COMPARED_COUNT_MAX:
        message = (
            f"The filters take {compared_count} comparisons with ACLs: at most {COMPARED_COUNT_MAX} are made. "
            "Send fewer filters at once."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    found: dict[AclFilter, list[AclBinding]] = {}
    for wanted, binding in exact.items():
        if binding is None:
            found[wanted] = matching(table, wanted)
        else:
            found[wanted] = [binding] if acl_key(binding) in table else []
    return found


def _removed(binding: AclBinding, check: Check) -> Removed:
    try:
        check(binding)
    except KafkaError as error:
        return Removed(binding, error.kept())
    return Removed(binding)
