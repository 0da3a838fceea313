"""ACLs in the metadata store: creation by binding, deletion by filter."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.base.resource_names import resource_name
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordRollback, RecordType, RowKeys, Table
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

if TYPE_CHECKING:
    from barnabas.metadata.audit.rollback import RollbackRules
    from barnabas.metadata.image import MetadataImage

#: Apache Kafka's limit of ACLs that one request creates or removes (`QuorumController.MAX_RECORDS_PER_USER_OP`).
CREATED_COUNT_MAX = REMOVED_COUNT_MAX = 10_000

#: Maximum of comparisons (filters of a request times ACLs); so many take about five seconds in a thread of their own.
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


def acl_resource(resource_type: ResourceType, name: str, pattern: PatternType) -> str:
    """Return the audit name of the resource that an ACL covers."""
    return resource_name(resource_type.name, name, prefixed=pattern is PatternType.PREFIXED)


def _row_keys(resource: str) -> RowKeys:
    """Return the beginnings of the keys of the ACLs on a resource: `topic/ord*` is a prefix, or a name with a star."""
    kind, _, name = resource.partition("/")
    type_name = kind.upper().replace("-", "_")
    if type_name not in ResourceType.__members__:
        return RowKeys()
    patterns = [(name, PatternType.LITERAL)]
    if name.endswith("*"):
        patterns.append((name.removesuffix("*"), PatternType.PREFIXED))
    return RowKeys(prefixes=tuple(_key_prefix(ResourceType[type_name], *pattern) for pattern in patterns))


def _key_prefix(resource_type: ResourceType, name: str, pattern: PatternType) -> str:
    """Return how the keys of all ACLs begin that have these fields."""
    return _compact_json([resource_type, name, pattern]).removesuffix("]") + ","


def _audit(
    _image: "MetadataImage", _key: str, before: AclBinding | None, after: AclBinding | None
) -> Iterator[Difference]:
    binding = after or before
    assert binding is not None
    permission, operation = binding.permission.name, binding.operation.name
    yield Difference(
        acl_resource(binding.resource_type, binding.resource_name, binding.pattern_type),
        f"acl {binding.principal} {permission} {operation} from {binding.host}",
        None if before is None else list(before),
        None if after is None else list(after),
    )


def _restore(
    image: "MetadataImage", bindings: Mapping[str, AclBinding | None], rules: "RollbackRules"
) -> Decision[None]:
    table = image.acls
    removed = [table[key] for key, binding in bindings.items() if binding is None and key in table]
    created = [binding for key, binding in bindings.items() if binding is not None and key not in table]
    creation = decide_create_acls(table, created, rules.check_new_acl)
    removal = decide_remove_acls(table, removed, rules.check_removed_acl)
    errors = [*creation.response, *(result.error for result in removal.response)]
    for error in errors:
        if error is not None:
            raise error
    return Decision(None, creation.changes + removal.changes, {**creation.reads, **removal.reads})


ACLS: RecordType[AclBinding] = RecordType(
    "acls", list, _from_plain, _audit, keeps_history=True, rollback=RecordRollback(_row_keys, _restore)
)


def acl_key(binding: AclBinding) -> str:
    """Return the key of a binding; it holds all fields of the binding, so that no ACL is stored twice."""
    return _compact_json(binding)


def _compact_json(fields: Sequence[object]) -> str:
    return json.dumps(fields, separators=(",", ":"))


#: Raises KafkaError for an ACL that must not be created or removed.
Check = Callable[[AclBinding], None]


def _allow_all(_binding: AclBinding) -> None:
    pass


def decide_create_acls(
    table: Table[AclBinding], requested: Sequence[AclBinding], check: Check = _allow_all
) -> Decision[list[KafkaError | None]]:
    """Create each ACL; an ACL that exists is a success, an ACL that is not valid gets INVALID_REQUEST."""
    results: list[KafkaError | None] = []
    changes: dict[str, StoreChange] = {}
    for binding in requested:
        key = acl_key(binding)
        try:
            _check(binding)
            if key not in table:
                check(binding)
        except KafkaError as error:
            results.append(error.without_traceback())
            continue
        results.append(None)
        if key not in table:
            changes[key] = ACLS.put(key, binding)
    if len(changes) > CREATED_COUNT_MAX:
        message = (
            f"The request creates {len(changes)} ACLs; one request can create at most {CREATED_COUNT_MAX}."
        )
        raise KafkaError(ErrorCode.POLICY_VIOLATION, message)
    reads = {ACLS.key(key): table.revision(key) for key in changes}
    return Decision(results, tuple(changes.values()), reads)


def _check(binding: AclBinding) -> None:
    reason = _acl_error(binding)
    if reason:
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _acl_error(binding: AclBinding) -> str:
    """Return why a new ACL is not valid; empty if it is valid."""
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
        return f"Invalid principal '{binding.principal}': expected Type:name, such as User:alice."
    return ""


def matching(table: Table[AclBinding], acl_filter: AclFilter) -> list[AclBinding]:
    return [binding for binding in table.values() if acl_filter.matches(binding)]


class Removed(NamedTuple):
    """An ACL that a filter matched; `error` is the reason if it was not removed."""

    binding: AclBinding
    error: KafkaError | None = None


def matching_each(table: Table[AclBinding], filters: Sequence[AclFilter]) -> list[list[AclBinding]]:
    """Return the ACLs to remove that each filter matches; several filters may match the same ACL.

    :raises KafkaError: INVALID_REQUEST if one request would compare or remove too many ACLs.
    """
    bindings_by_filter = _matches(table, dict.fromkeys(filters))
    matched_count = len({binding for bindings in bindings_by_filter.values() for binding in bindings})
    if matched_count > REMOVED_COUNT_MAX:
        message = (
            f"The filters match {matched_count} ACLs; one request can remove at most {REMOVED_COUNT_MAX}."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return [bindings_by_filter[acl_filter] for acl_filter in filters]


def decide_remove_acls(
    table: Table[AclBinding], bindings: Sequence[AclBinding], check: Check = _allow_all
) -> Decision[list[Removed]]:
    """Remove ACLs; another request may have removed some of them already."""
    results = [_removed(binding, check) for binding in bindings]
    keys = [acl_key(result.binding) for result in results if result.error is None]
    reads = {ACLS.key(key): table.revision(key) for key in keys if key in table}
    return Decision(results, tuple(ACLS.remove(key) for key in keys if key in table), reads)


def _matches(table: Table[AclBinding], filters: Collection[AclFilter]) -> dict[AclFilter, list[AclBinding]]:
    """Return the ACLs that each filter matches; a filter that can match only one ACL looks it up by its key."""
    exact = {acl_filter: acl_filter.binding for acl_filter in filters}
    compared_count = len(table) * sum(binding is None for binding in exact.values())
    if compared_count > COMPARED_COUNT_MAX:
        message = (
            f"The filters need {compared_count} comparisons with ACLs; the limit is {COMPARED_COUNT_MAX}. "
            "Send fewer filters in one request."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    matches: dict[AclFilter, list[AclBinding]] = {}
    for acl_filter, binding in exact.items():
        if binding is None:
            matches[acl_filter] = matching(table, acl_filter)
        else:
            matches[acl_filter] = [binding] if acl_key(binding) in table else []
    return matches


def _removed(binding: AclBinding, check: Check) -> Removed:
    try:
        check(binding)
    except KafkaError as error:
        return Removed(binding, error.without_traceback())
    return Removed(binding)
