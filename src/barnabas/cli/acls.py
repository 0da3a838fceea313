"""`barnabas acls`: list, add, remove, review and simulate ACLs."""

from collections.abc import Sequence
from itertools import product
from typing import Annotated

import typer

from barnabas.cli.acl_options import (
    ANY_RESOURCE,
    AclOperationArg,
    Deny,
    Groups,
    Hosts,
    Names,
    OnCluster,
    Operations,
    Prefixed,
    Principals,
    Resource,
    Tokens,
    Topics,
    Transactions,
    Users,
    operation_of,
    or_any,
    print_acls,
    resources_of,
)
from barnabas.cli.acl_review import effective_acls, explain_acls, unused_acls
from barnabas.cli.acl_simulation import record_decisions, simulate_acls
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import notice
from barnabas.client.admin.admin import Admin
from barnabas.wire.acls import (
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    principal_of,
)
from barnabas.wire.errors import KafkaError


@command(
    "list",
    example="acls list --topic orders",
    apis=("DescribeAcls",),
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
    as_json: Json = False,
) -> None:
    """List ACLs: all, or those that apply to a resource or name a principal."""
    resources = resources_of(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    filters = _list_filters(resources, principal, exact=exact)
    acls = with_admin(bootstrap, lambda admin: _find(admin, filters))
    print_acls(sorted(acls), as_json=as_json)
    if not acls:
        notice("no matching ACLs; 'barnabas acls add' creates ACLs")


def _list_filters(requested: Sequence[Resource], principals: Names, *, exact: bool) -> list[AclFilter]:
    """Return the filters of `acls list`."""
    pattern_type = PatternType.ANY if exact else PatternType.MATCH
    return [
        AclFilter(
            kind,
            name,
            PatternType.ANY if name is None else pattern_type,
            None if principal is None else principal_of(principal),
        )
        for (kind, name), principal in product(requested or ANY_RESOURCE, or_any(principals))
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
    resources = resources_of(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    acls = _bindings(resources, principal, operation or (), host, prefixed=prefixed, deny=deny)
    errors = with_admin(bootstrap, lambda admin: admin.create_acls(acls))
    created = [acl for acl, error in zip(acls, errors, strict=True) if error is None]
    print_acls(created, as_json=as_json)
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
            principal_of(principal),
            host,
            operation_of(operation),
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
    resources = resources_of(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    filters = _removal_filters(resources, principal, operation or (), host, prefixed=prefixed, deny=deny)
    results = with_admin(bootstrap, lambda admin: admin.delete_acls(filters))
    matches = [result for result in results if not isinstance(result, KafkaError)]
    errors = {binding: error for match in matches for binding, error in match.items()}
    print_acls(sorted(binding for binding, error in errors.items() if error is None), as_json=as_json)
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
            None if principal is None else principal_of(principal),
            host,
            AclOperation.ANY if operation is None else operation_of(operation),
            AclPermission.DENY if deny else AclPermission.ANY,
        )
        for (kind, name), principal, operation, host in product(
            requested or ANY_RESOURCE, or_any(principals), or_any(operations), or_any(hosts)
        )
    ]


app = command_group(
    list_acls,
    add_acls,
    remove_acls,
    explain_acls,
    effective_acls,
    unused_acls,
    record_decisions,
    simulate_acls,
)
