"""`barnabas acls`: who may do what."""

from enum import StrEnum
from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="List, add and remove ACLs: who may do what.", no_args_is_help=True)


class AclOperationArg(StrEnum):
    """What may be done, or not."""

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


Names = list[str] | None
Topics = Annotated[
    Names,
    typer.Option(
        "--topic", "-t", metavar="NAME", help="A topic, '*' for all.", autocompletion=candidates.topics
    ),
]
Groups = Annotated[
    Names, typer.Option("--group", "-g", metavar="NAME", help="A group.", autocompletion=candidates.groups)
]
Transactions = Annotated[
    Names,
    typer.Option(
        "--transactional-id",
        metavar="NAME",
        help="A transactional id.",
        autocompletion=candidates.transactional_ids,
    ),
]
Tokens = Annotated[Names, typer.Option("--delegation-token", metavar="NAME", help="A delegation token.")]
Users = Annotated[
    Names,
    typer.Option("--user", metavar="NAME", help="User whose delegation tokens may be created or described."),
]
OnCluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
Operations = Annotated[
    list[AclOperationArg] | None,
    typer.Option("--operation", "-o", case_sensitive=False, help="May be repeated."),
]
Principals = Annotated[
    Names,
    typer.Option(
        "--principal",
        "-p",
        metavar="USER",
        help="Who: alice, User:alice or '*'; may be repeated.",
        autocompletion=candidates.users,
    ),
]
Hosts = Annotated[Names, typer.Option("--host", metavar="ADDRESS", help="From where; may be repeated.")]
Prefixed = Annotated[bool, typer.Option("--prefixed", help="Names are prefixes.")]
Deny = Annotated[bool, typer.Option("--deny", help="Add DENY ACLs instead of ALLOW; DENY takes precedence.")]


@app.command("list")
@handle_errors
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
        typer.Option("--exact", help="Only ACLs on exactly this name, without wildcard and prefixed ones."),
    ] = False,
    unused: Annotated[
        bool,
        typer.Option("--unused", help="Only ACLs that no broker has used since it started."),
    ] = False,
    as_json: Json = False,
) -> None:
    """List ACLs: all, or those that apply to a resource or concern a principal."""
    from barnabas.cli.work import acls

    resources = acls.resources(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    wanted = acls.filters(resources, principal, exact=exact)
    acls.show_list(bootstrap, wanted, unused=unused, as_json=as_json)


@app.command("add")
@handle_errors
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
    """Allow (or forbid) each principal each operation on each resource."""
    from barnabas.cli.work import acls

    resources = acls.resources(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    bindings = acls.bindings(
        resources, principal, [each.value for each in operation or []], host, prefixed=prefixed, deny=deny
    )
    acls.add(bootstrap, bindings, as_json=as_json)


@app.command("remove")
@handle_errors
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
    deny: Annotated[bool, typer.Option("--deny", help="Only what forbids.")] = False,
    as_json: Json = False,
) -> None:
    """Remove the ACLs that have exactly these names, and are for these principals and operations, if given."""
    from barnabas.cli.work import acls

    resources = acls.resources(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    operations = [each.value for each in operation or []]
    filters = acls.removal(resources, principal, operations, host, prefixed=prefixed, deny=deny)
    acls.remove(bootstrap, filters, as_json=as_json)
