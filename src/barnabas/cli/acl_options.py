"""Options and output that the commands of `barnabas acls` share."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from barnabas.cli.support import candidates
from barnabas.cli.support.output import print_json, print_table
from barnabas.wire.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

HEADER = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


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
ANY_RESOURCE: Sequence[Resource] = ((ResourceType.ANY, None),)

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


def resources_of(
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


def or_any(items: Sequence[ItemT] | None) -> Sequence[ItemT | None]:
    return items or [None]


def operation_of(argument: AclOperationArg) -> AclOperation:
    return AclOperation[argument.upper().replace("-", "_")]


def print_acls(acls: Iterable[AclBinding], *, as_json: bool) -> None:
    if as_json:
        print_json(as_rows(acls))
    else:
        print_table(HEADER, list(map(_row, acls)))


def as_rows(acls: Iterable[AclBinding]) -> list[dict[str, str]]:
    """Return each ACL as `--json` prints it."""
    return [dict(zip(HEADER, _row(acl), strict=True)) for acl in acls]


def _row(acl: AclBinding) -> tuple[str, ...]:
    return (
        format_enum(acl.resource_type),
        acl.resource_name,
        format_enum(acl.pattern_type),
        acl.principal,
        acl.host,
        format_enum(acl.operation),
        format_enum(acl.permission),
    )


def format_enum(code: ResourceType | PatternType | AclOperation | AclPermission) -> str:
    return code.name.lower().replace("_", "-")
