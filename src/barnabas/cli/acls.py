"""`barnabas acls`: list, add and remove ACLs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import product
from typing import Annotated, TypeVar

import typer

from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import notice, print_json, print_table
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

_HEADER = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


class AclOperationArg(StrEnum):
    ALL = "all"
    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    CLUSTER_ACTION = "cluster-action"
    DESCRIBE_CONFIGS = "describe-configs"
    ALTER_CONFIGS = "alter-configs"
    IDEMPOTENT_WRITE = "idempotent-write"
    CREATE_TOKENS = "create-tokens"
    DESCRIBE_TOKENS = "describe-tokens"
    TWO_PHASE_COMMIT = "two-phase-commit"


ItemT = TypeVar("ItemT")
Resource = tuple[ResourceType, str | None]
#: The resource of a filter without resource options.
_ANY_RESOURCE: Sequence[Resource] = ((ResourceType.ANY, None),)

Names = list[str] | None
Topics = Annotated[
    Names,
    typer.Option(
        "--topic",
        "-t",
        metavar="NAME",
        help="Topic; '*' stands for all topics. May be repeated.",
        autocompletion=candidates.topics,
    ),
]
Groups = Annotated[
    Names,
    typer.Option(
        "--group", "-g", metavar="NAME", help="Group; may be repeated.", autocompletion=candidates.groups
    ),
]
Transactions = Annotated[
    Names,
    typer.Option(
        "--transactional-id",
        metavar="NAME",
        help="Transactional id; may be repeated.",
        autocompletion=candidates.transactional_ids,
    ),
]
Tokens = Annotated[
    Names, typer.Option("--delegation-token", metavar="NAME", help="Delegation token; may be repeated.")
]
Users = Annotated[
    Names,
    typer.Option(
        "--user",
        metavar="NAME",
        help="User whose delegation tokens may be created or described; may be repeated.",
    ),
]
OnCluster = Annotated[bool, typer.Option("--cluster", help="The cluster as the resource.")]
Operations = Annotated[
    list[AclOperationArg] | None,
    typer.Option("--operation", "-o", case_sensitive=False, help="Operation; may be repeated."),
]
Principals = Annotated[
    Names,
    typer.Option(
        "--principal",
        "-p",
        metavar="USER",
        help="Principal: alice, User:alice or '*'; may be repeated.",
        autocompletion=candidates.users,
    ),
]
Hosts = Annotated[
    Names,
    typer.Option("--host", metavar="ADDRESS", help="Address of the client (default: any); may be repeated."),
]
Prefixed = Annotated[
    bool, typer.Option("--prefixed", help="Treat names as prefixes (pattern type PREFIXED).")
]
Deny = Annotated[bool, typer.Option("--deny", help="Add DENY ACLs instead of ALLOW; DENY takes precedence.")]


@command(
    "list",
    example="acls list --topic orders",
    apis=("DescribeAcls", "DescribeAclUse"),
    needs=("describe cluster",),
)
def list_acls(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Transactions = None,
    delegation_token: Tokens = None,
    user: Users = None,
    cluster: OnCluster = False,
    principal: Principals = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Only ACLs on exactly this name; leave out wildcard and prefixed ACLs."),
    ] = False,
    unused: Annotated[
        bool,
        typer.Option("--unused", help="Only ACLs that no broker has used since it started."),
    ] = False,
    as_json: Json = False,
) -> None:
    """List ACLs: all, or those that apply to a resource or name a principal."""
    resources = _resources(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    filters = _list_filters(resources, principal, exact=exact)
    acls = with_admin(bootstrap, lambda admin: _find(admin, filters))
    if unused:
        use = with_admin(bootstrap, Admin.describe_acl_use)
        acls -= use.used
        since = datetime.fromtimestamp(use.since_ms / 1000).astimezone().isoformat(" ", "seconds")
        notice(f"all brokers have counted uses since {since}")
    _print(sorted(acls), as_json=as_json)
    if not acls and not unused:
        notice("no matching ACLs; 'barnabas acls add' creates ACLs")


def _list_filters(requested: Sequence[Resource], principals: Names, *, exact: bool) -> list[AclFilter]:
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


async def _find(admin: Admin, filters: Sequence[AclFilter]) -> set[AclBinding]:
    return {binding for acl_filter in filters for binding in await admin.describe_acls(acl_filter)}


@command(
    "add",
    example="acls add --principal alice --operation read --topic orders- --prefixed",
    apis=("CreateAcls",),
    needs=("alter cluster",),
)
def add_acls(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    principal: Principals = None,
    operation: Operations = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Transactions = None,
    delegation_token: Tokens = None,
    user: Users = None,
    cluster: OnCluster = False,
    prefixed: Prefixed = False,
    host: Hosts = None,
    deny: Deny = False,
    as_json: Json = False,
) -> None:
    """Allow (or with --deny forbid) each principal each operation on each resource."""
    resources = _resources(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    acls = _bindings(resources, principal, operation or (), host, prefixed=prefixed, deny=deny)
    errors = with_admin(bootstrap, lambda admin: admin.create_acls(acls))
    created = [acl for acl, error in zip(acls, errors, strict=True) if error is None]
    _print(created, as_json=as_json)
    raise_all(errors)


def _bindings(
    requested: Sequence[Resource],
    principals: Names,
    operations: Sequence[AclOperationArg],
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


@command("remove", example="acls remove --principal alice", apis=("DeleteAcls",), needs=("alter cluster",))
def remove_acls(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    principal: Principals = None,
    operation: Operations = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Transactions = None,
    delegation_token: Tokens = None,
    user: Users = None,
    cluster: OnCluster = False,
    prefixed: Prefixed = False,
    host: Hosts = None,
    deny: Annotated[bool, typer.Option("--deny", help="Only DENY ACLs.")] = False,
    as_json: Json = False,
) -> None:
    """Remove the ACLs with exactly these names, principals and operations, as far as they are given."""
    resources = _resources(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    filters = _removal_filters(resources, principal, operation or (), host, prefixed=prefixed, deny=deny)
    results = with_admin(bootstrap, lambda admin: admin.delete_acls(filters))
    matches = [result for result in results if not isinstance(result, KafkaError)]
    errors = {binding: error for match in matches for binding, error in match.items()}
    _print(sorted(binding for binding, error in errors.items() if error is None), as_json=as_json)
    raise_all([*results, *errors.values()])
    if not errors:
        notice("no matching ACLs: nothing was removed")


def _removal_filters(
    requested: Sequence[Resource],
    principals: Names,
    operations: Sequence[AclOperationArg],
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


def _resources(
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


def _or_any(items: Sequence[ItemT] | None) -> Sequence[ItemT | None]:
    return items or [None]


def _principal(text: str) -> str:
    """Return the full name of a principal: `alice` is short for `User:alice`."""
    return text if ":" in text else f"User:{text}"


def _operation(argument: AclOperationArg) -> AclOperation:
    return AclOperation[argument.upper().replace("-", "_")]


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


app = command_group(list_acls, add_acls, remove_acls)
