"""What `barnabas acls` does."""

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

#: What a filter that names none means.
_ANY_RESOURCE: Sequence[Resource] = ((ResourceType.ANY, None),)
ItemT = TypeVar("ItemT")

_HEADER = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def resources(
    topics: Names, groups: Names, transactional_ids: Names, tokens: Names, users: Names, *, cluster: bool
) -> list[Resource]:
    """The resources that options name."""
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
    found: Sequence[Resource],
    principals: Names,
    operations: Sequence[str],
    hosts: Names,
    *,
    prefixed: bool,
    deny: bool,
) -> list[AclBinding]:
    """Each principal with each operation on each resource from each host.

    :raises Failure: When one of the three is missing.
    """
    for given, what in (
        (principals, "--principal"),
        (operations, "--operation"),
        (found, "--topic or another"),
    ):
        if not given:
            message = f"nothing is said by {what}"
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
            found, principals or (), operations, hosts or (WILDCARD,)
        )
    ]


def filters(found: Sequence[Resource], principals: Names, *, exact: bool) -> list[AclFilter]:
    """What a list is to show."""
    pattern_type = PatternType.ANY if exact else PatternType.MATCH
    return [
        AclFilter(
            kind,
            name,
            PatternType.ANY if name is None else pattern_type,
            None if principal is None else _principal(principal),
        )
        for (kind, name), principal in product(found or _ANY_RESOURCE, _or_any(principals))
    ]


def removal(
    found: Sequence[Resource],
    principals: Names,
    operations: Sequence[str],
    hosts: Names,
    *,
    prefixed: bool,
    deny: bool,
) -> list[AclFilter]:
    """What is to be removed.

    :raises Failure: When that would be everything.
    """
    if not found and not principals:
        message = "neither a principal nor a resource is given: that would remove every ACL"
        raise wrong_use(message, "name one, as by --principal alice, or --topic orders")
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
            found or _ANY_RESOURCE, _or_any(principals), _or_any(operations), _or_any(hosts)
        )
    ]


def _or_any(items: Sequence[ItemT] | None) -> Sequence[ItemT | None]:
    return items or [None]


def _principal(text: str) -> str:
    """`alice` is short for `User:alice`."""
    return text if ":" in text else f"User:{text}"


def _operation(text: str) -> AclOperation:
    return AclOperation[text.upper().replace("-", "_")]


def show_list(bootstrap: str, wanted: Sequence[AclFilter], *, unused: bool, as_json: bool) -> None:
    """Print the ACLs that the filters mean; with `unused` those that no broker has decided anything by."""
    found = with_admin(bootstrap, lambda admin: _find(admin, wanted))
    if unused:
        use = with_admin(bootstrap, Admin.describe_acl_use)
        found -= use.used
        since = datetime.fromtimestamp(use.since_ms / 1000).astimezone().isoformat(" ", "seconds")
        notice(f"all brokers have been counting since {since}")
    _print(sorted(found), as_json=as_json)
    if not found and not unused:
        notice("no such ACLs: 'barnabas acls add' makes some")


async def _find(admin: Admin, wanted: Sequence[AclFilter]) -> set[AclBinding]:
    return {binding for each in wanted for binding in await admin.describe_acls(each)}


def add(bootstrap: str, wanted: Sequence[AclBinding], *, as_json: bool) -> None:
    """Make ACLs, and print them."""
    outcomes = with_admin(bootstrap, lambda admin: admin.create_acls(wanted))
    made = [each for each, error in zip(wanted, outcomes, strict=True) if error is None]
    _print(made, as_json=as_json)
    raise_all(outcomes)


def remove(bootstrap: str, wanted: Sequence[AclFilter], *, as_json: bool) -> None:
    """Remove ACLs, and print those that are gone."""
    outcomes = with_admin(bootstrap, lambda admin: admin.delete_acls(wanted))
    found = [each for each in outcomes if not isinstance(each, KafkaError)]
    fates = {binding: error for each in found for binding, error in each.items()}
    _print(sorted(binding for binding, error in fates.items() if error is None), as_json=as_json)
    raise_all([*outcomes, *fates.values()])
    if not fates:
        notice("no such ACLs: nothing was removed")


def _print(found: Iterable[AclBinding], *, as_json: bool) -> None:
    rows = [
        (
            _words(each.resource_type),
            each.resource_name,
            _words(each.pattern_type),
            each.principal,
            each.host,
            _words(each.operation),
            _words(each.permission),
        )
        for each in found
    ]
    if as_json:
        print_json([dict(zip(_HEADER, row, strict=True)) for row in rows])
    else:
        print_table(_HEADER, rows)


def _words(code: ResourceType | PatternType | AclOperation | AclPermission) -> str:
    return code.name.lower().replace("_", "-")
