"""`barnabas acls explain`, `effective` and `unused`: what ACLs allow, which of them decide, and which do not matter."""

from typing import Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.cli.acl_options import (
    HEADER,
    AclOperationArg,
    Groups,
    OnCluster,
    Tokens,
    Topics,
    Transactions,
    Users,
    as_rows,
    format_enum,
    operation_of,
    print_acls,
    resources_of,
)
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import FAILED, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.times import format_timestamp, parse_time_ms
from barnabas.client.admin.acls import AclUse
from barnabas.client.admin.admin import Admin
from barnabas.security.acl_review import AclQuestion, Explanation, Permissions, effective, explain
from barnabas.wire.acls import WILDCARD, AclBinding, PatternType, principal_of

_PERMISSIONS_HEADER = ("resource", "name", "pattern", "host", "operations", "except")

Principal = Annotated[
    str,
    typer.Option(
        "--principal",
        "-p",
        metavar="USER",
        help="Principal: alice or User:alice.",
        autocompletion=candidates.users,
    ),
]
Operation = Annotated[
    AclOperationArg, typer.Option("--operation", "-o", case_sensitive=False, help="What the principal does.")
]
Host = Annotated[
    str,
    typer.Option("--host", metavar="ADDRESS", help="Address of the client (default: one that no ACL names)."),
]


@command(
    "explain",
    example="acls explain --principal alice --operation read --topic orders",
    apis=("DescribeAcls",),
    needs=("describe cluster",),
    details="Exits with 1 if it is not allowed. Super users are allowed everything, and are not considered.",
)
def explain_acls(
    principal: Principal,
    operation: Operation,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Transactions = None,
    delegation_token: Tokens = None,
    user: Users = None,
    cluster: OnCluster = False,
    host: Host = WILDCARD,
    as_json: Json = False,
) -> None:
    """Show whether a principal may do something, and which ACLs decide that."""
    resources = resources_of(topic, group, transactional_id, delegation_token, user, cluster=cluster)
    if len(resources) != 1 or operation is AclOperationArg.ALL:
        message = "explain needs one resource, such as --topic orders, and an operation other than all"
        raise wrong_use(message, "barnabas acls explain --principal alice --operation read --topic orders")
    [(kind, name)] = resources
    acls = with_admin(bootstrap, Admin.describe_acls)
    question = AclQuestion(principal_of(principal), operation_of(operation), kind, name or "", host)
    explanation = explain(acls, question)
    _print_explanation(explanation, as_json=as_json)
    if not explanation.is_allowed:
        raise typer.Exit(FAILED)


def _print_explanation(explanation: Explanation, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "allowed": explanation.is_allowed,
                "reason": explanation.reason,
                "deciding": as_rows(explanation.deciding),
                "others": as_rows(explanation.others),
            }
        )
        return
    print(f"{'allowed' if explanation.is_allowed else 'denied'}: {explanation.reason}")
    if explanation.deciding:
        print_acls(explanation.deciding, as_json=False)
    if explanation.others:
        print("Further ACLs for this operation make no difference:")
        print_acls(explanation.others, as_json=False)


@command(
    "effective",
    example="acls effective alice",
    apis=("DescribeAcls",),
    needs=("describe cluster",),
    details="Includes what one permission implies (READ implies DESCRIBE) and ACLs for all users. Super users are "
    "allowed everything, and are not considered.",
)
def effective_acls(
    principal: Annotated[
        str,
        typer.Argument(
            metavar="USER", help="Principal: alice or User:alice.", autocompletion=candidates.users
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List all that ACLs allow a principal, by resource."""
    acls: list[AclBinding] = with_admin(bootstrap, Admin.describe_acls)
    found = effective(acls, principal_of(principal))
    if as_json:
        print_json([_as_json(each) for each in found])
    else:
        print_table(_PERMISSIONS_HEADER, [_row(each) for each in found])
    if not found:
        notice(f"no ACL allows {principal_of(principal)} anything; 'barnabas acls add' creates ACLs")


def _row(permissions: Permissions) -> tuple[str, ...]:
    exceptions = [_exception(deny) for deny in permissions.exceptions]
    return (
        format_enum(permissions.resource_type),
        permissions.name,
        format_enum(permissions.pattern_type),
        permissions.host,
        " ".join(map(format_enum, permissions.operations)),
        ", ".join(exceptions),
    )


def _exception(deny: AclBinding) -> str:
    name = deny.resource_name + ("..." if deny.pattern_type is PatternType.PREFIXED else "")
    host = "" if deny.host == WILDCARD else f" from {deny.host}"
    return f"{format_enum(deny.operation)} {name}{host}"


def _as_json(permissions: Permissions) -> dict[str, object]:
    row = dict(zip(_PERMISSIONS_HEADER, _row(permissions), strict=True))
    return row | {
        "operations": list(map(format_enum, permissions.operations)),
        "except": as_rows(permissions.exceptions),
    }


@command(
    "unused",
    example="acls unused --since 30d",
    apis=("DescribeAcls", "DescribeAclUse"),
    needs=("describe cluster",),
    details="Brokers keep the times over restarts, exact to ten minutes. Only brokers that run now are asked: "
    "start those that are down before you delete an ACL.",
)
def unused_acls(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only ACLs not used or created since this time, such as 30d or a date (default: never used).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List ACLs that have neither allowed nor denied anything for some time, with their creations and last uses."""
    since_ms = 0 if since is None else parse_time_ms(since, SystemClock().wall_ms())
    acls, use = with_admin(bootstrap, _acls_and_use)
    known_ms = dict(use.last_used_ms) if since is None else {**use.created_ms, **use.last_used_ms}
    unused = [acl for acl in sorted(acls) if known_ms.get(acl, -1) < since_ms]
    rows = [
        {
            **row,
            "created": format_timestamp(use.created_ms.get(acl)),
            "last used": format_timestamp(use.last_used_ms.get(acl)),
        }
        for row, acl in zip(as_rows(unused), unused, strict=True)
    ]
    if as_json:
        print_json(rows)
    else:
        print_table((*HEADER, "created", "last used"), [tuple(row.values()) for row in rows])
    began = format_timestamp(use.since_ms)
    if since_ms < use.since_ms and since is not None:
        notice(f"uses before {began} are not known: a broker has recorded them only since then")
    else:
        notice(f"the brokers that run now have recorded uses since {began}")


async def _acls_and_use(admin: Admin) -> tuple[list[AclBinding], AclUse]:
    return await admin.describe_acls(), await admin.describe_acl_use()
