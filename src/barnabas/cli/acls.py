"""`barnabas acls`: list, add and remove ACLs."""

from enum import StrEnum
from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="List, add and remove ACLs.", no_args_is_help=True)


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
        typer.Option("--exact", help="Only ACLs on exactly this name; leave out wildcard and prefixed ACLs."),
    ] = False,
    unused: Annotated[
        bool,
        typer.Option("--unused", help="Only ACLs that no broker has used since it started."),
    ] = False,
    as_json: Json = False,
) -> None:
    """List ACLs: all, or those that apply to a resource or name a principal."""
    from barnabas.cli.work import acls

    resources = acls.resources(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    filters = acls.filters(resources, principal, exact=exact)
    acls.show_list(bootstrap, filters, unused=unused, as_json=as_json)


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
    """Allow (or with --deny forbid) each principal each operation on each resource."""
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
    deny: Annotated[bool, typer.Option("--deny", help="Only DENY ACLs.")] = False,
    as_json: Json = False,
) -> None:
    """Remove the ACLs with exactly these names, principals and operations, as far as they are given."""
    from barnabas.cli.work import acls

    resources = acls.resources(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    operations = [each.value for each in operation or []]
    filters = acls.removal(resources, principal, operations, host, prefixed=prefixed, deny=deny)
    acls.remove(bootstrap, filters, as_json=as_json)
