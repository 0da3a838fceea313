"""Implementation of `barnabas acls`."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import product
from typing import TypeVar

from barnabas.cli.failures import wrong_use
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.outcomes import raise_all
from barnabas.client.admin.admin import Admin
from barnabas.wire.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from barnabas.wire.errors import KafkaError

Names = Sequence[str] | None
Resource = tuple[ResourceType, str | None]

#: The resource of a filter without resource options.
_ANY_RESOURCE: Sequence[Resource] = ((ResourceType.ANY, None),)
ItemT = TypeVar("ItemT")

_HEADER = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def resources(
    topics: Names, groups: Names, transactional_ids: Names, tokens: Names, users: Names, *, cluster: bool
) -> list[Resource]:
    """Return the resources that the options name."""
    named = (
        (ResourceType.TOPIC, topics),
        (ResourceType.GROUP, groups),
        (ResourceType.TRANSACTIONAL_ID, transactional_ids),
        (ResourceType.DELEGATION_TOKEN, tokens),
        (ResourceType.USER, users),
        (ResourceType.CLUSTER, [CLUSTER_NAME] if cluster else None),
    )
    return [(kind, name) for kind, names in named for name in names or ()]


def bindings(
    requested: Sequence[Resource],
    principals: Names,
    operations: Sequence[str],
    hosts: Names,
    *,
    prefixed: bool,
    deny: bool,
) -> list[AclBinding]:
    """Return an ACL for each combination of principal, operation, resource and host.

    :raises CommandError: If principals, operations or resources are missing.
    """
    for values, option in (
        (principals, "--principal"),
        (operations, "--operation"),
        (requested, "--topic or another resource"),
    ):
        if not values:
            message = f"missing option: {option}"
            raise wrong_use(message, "barnabas acls add --principal alice --operation read --topic orders")
    permission = AclPermission.DENY if deny else AclPermission.ALLOW
    return [
        AclBinding(
            kind,
            name or "",
            PatternType.PREFIXED if prefixed and kind is not ResourceType.CLUSTER else PatternType.LITERAL,
            _principal(principal),
            host,
            _operation(operation),
            permission,
        )
        for (kind, name), principal, operation, host in product(
            requested, principals or (), operations, hosts or (WILDCARD,)
        )
    ]


def filters(requested: Sequence[Resource], principals: Names, *, exact: bool) -> list[AclFilter]:
    """Return the filters of `acls list`."""
    pattern_type = PatternType.ANY if exact else PatternType.MATCH
    return [
        AclFilter(
            kind,
            name,
            PatternType.ANY if name is None else pattern_type,
            None if principal is None else _principal(principal),
        )
        for (kind, name), principal in product(requested or _ANY_RESOURCE, _or_any(principals))
    ]


def removal(
    requested: Sequence[Resource],
    principals: Names,
    operations: Sequence[str],
    hosts: Names,
    *,
    prefixed: bool,
    deny: bool,
) -> list[AclFilter]:
    """Return the filters of `acls remove`.

    :raises CommandError: If they would match every ACL.
    """
    if not requested and not principals:
        message = "no principal and no resource specified: this would remove every ACL"
        raise wrong_use(message, "specify one, such as --principal alice or --topic orders")
    return [
        AclFilter(
            kind,
            name,
            PatternType.PREFIXED if prefixed else PatternType.ANY if name is None else PatternType.LITERAL,
            None if principal is None else _principal(principal),
            host,
            AclOperation.ANY if operation is None else _operation(operation),
            AclPermission.DENY if deny else AclPermission.ANY,
        )
        for (kind, name), principal, operation, host in product(
            requested or _ANY_RESOURCE, _or_any(principals), _or_any(operations), _or_any(hosts)
        )
    ]


def _or_any(items: Sequence[ItemT] | None) -> Sequence[ItemT | None]:
    return items or [None]


def _principal(text: str) -> str:
    """Return the full name of a principal: `alice` is short for `User:alice`."""
    return text if ":" in text else f"User:{text}"


def _operation(text: str) -> AclOperation:
    return AclOperation[text.upper().replace("-", "_")]


def show_list(bootstrap: str, filters: Sequence[AclFilter], *, unused: bool, as_json: bool) -> None:
    """Print the ACLs that match the filters; with `unused` only those that no broker has used in a decision."""
    acls = with_admin(bootstrap, lambda admin: _find(admin, filters))
    if unused:
        use = with_admin(bootstrap, Admin.describe_acl_use)
        acls -= use.used
        since = datetime.fromtimestamp(use.since_ms / 1000).astimezone().isoformat(" ", "seconds")
        notice(f"all brokers have counted uses since {since}")
    _print(sorted(acls), as_json=as_json)
    if not acls and not unused:
        notice("no matching ACLs; 'barnabas acls add' creates ACLs")


async def _find(admin: Admin, filters: Sequence[AclFilter]) -> set[AclBinding]:
    return {binding for acl_filter in filters for binding in await admin.describe_acls(acl_filter)}


def add(bootstrap: str, acls: Sequence[AclBinding], *, as_json: bool) -> None:
    """Create ACLs, and print those that were created."""
    errors = with_admin(bootstrap, lambda admin: admin.create_acls(acls))
    created = [acl for acl, error in zip(acls, errors, strict=True) if error is None]
    _print(created, as_json=as_json)
    raise_all(errors)


def remove(bootstrap: str, filters: Sequence[AclFilter], *, as_json: bool) -> None:
    """Remove the ACLs that match the filters, and print those that were removed."""
    results = with_admin(bootstrap, lambda admin: admin.delete_acls(filters))
    matches = [result for result in results if not isinstance(result, KafkaError)]
    errors = {binding: error for match in matches for binding, error in match.items()}
    _print(sorted(binding for binding, error in errors.items() if error is None), as_json=as_json)
    raise_all([*results, *errors.values()])
    if not errors:
        notice("no matching ACLs: nothing was removed")


def _print(acls: Iterable[AclBinding], *, as_json: bool) -> None:
    rows = [
        (
            _format_enum(acl.resource_type),
            acl.resource_name,
            _format_enum(acl.pattern_type),
            acl.principal,
            acl.host,
            _format_enum(acl.operation),
            _format_enum(acl.permission),
        )
        for acl in acls
    ]
    if as_json:
        print_json([dict(zip(_HEADER, row, strict=True)) for row in rows])
    else:
        print_table(_HEADER, rows)


def _format_enum(code: ResourceType | PatternType | AclOperation | AclPermission) -> str:
    return code.name.lower().replace("_", "-")
