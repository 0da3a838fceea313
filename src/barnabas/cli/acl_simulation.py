"""`barnabas acls record` and `simulate`: what other ACLs would refuse of what was requested."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.decision_file import add_decisions, as_row, read_decisions
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import FAILED, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.times import format_timestamp
from barnabas.client.admin.acl_decisions import describe_acl_decisions
from barnabas.client.admin.admin import Admin
from barnabas.wire.acls import AclBinding, AclDecision, DecisionRecord, principal_of

#: The name of a decision that is about any resource of a type.
_ANY = "(any)"

RecordFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="File of recorded decisions.", show_default=False)
]


@command(
    "record",
    example="acls record decisions.jsonl",
    apis=("DescribeAclDecisions",),
    needs=("describe cluster",),
    details="Adds the decisions that the file does not have yet. Each broker keeps the last 10,000 that were allowed "
    "and the last 10,000 that were refused, also over restarts: if there are more, run this regularly. Only brokers "
    "that run now are asked.",
)
def record_decisions(
    file: RecordFile, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Write what ACLs have allowed and refused to a file, for `acls simulate`: each distinct decision once."""
    record = add_decisions(file, with_admin(bootstrap, describe_acl_decisions))
    count, since = len(list(record.decisions)), format_timestamp(record.since_ms)
    if as_json:
        print_json({"decisions": count, "since": since, "left out": record.left_out_count})
        return
    print(f"{file} has {count} decisions since {since}")
    if record.left_out_count:
        notice(
            f"the brokers have not kept {record.left_out_count} decisions: there were too many, or a name was too long"
        )


@command(
    "simulate",
    example="acls simulate decisions.jsonl --file cluster.yaml",
    apis=("DescribeAcls",),
    needs=("describe cluster",),
    details="The ACLs of the declared state count as if there were no others. Exits with 1 if something that was "
    "allowed would be refused.",
)
def simulate_acls(
    record_file: RecordFile,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="YAML file with the declared state (default: the present ACLs of the cluster).",
        ),
    ] = None,
    super_users: Annotated[
        list[str] | None,
        typer.Option(
            "--super-user",
            metavar="USER",
            help="Super user, instead of those of the brokers in the record; may be repeated.",
        ),
    ] = None,
    allow_if_no_acl: Annotated[
        bool | None,
        typer.Option(
            "--allow-if-no-acl/--deny-if-no-acl",
            help="Whether a resource without ACLs is allowed (default: as on the brokers in the record).",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List which recorded requests would be refused with other ACLs, and which would be allowed."""
    from barnabas.security.acl_simulation import simulate

    record = _with_settings(read_decisions(record_file), super_users, allow_if_no_acl)
    found = simulate(record, _declared(file) if file else with_admin(bootstrap, Admin.describe_acls))
    if as_json:
        print_json(
            {"refused": list(map(_as_json, found.refused)), "allowed": list(map(_as_json, found.allowed))}
        )
    else:
        _print("Allowed until now, and would be refused:", found.refused)
        _print("Refused until now, and would be allowed:", found.allowed)
    if not found.refused and not found.allowed:
        notice("all recorded requests would be decided as before")
    if found.refused:
        raise typer.Exit(FAILED)


def _with_settings(
    record: DecisionRecord, super_users: Sequence[str] | None, allow_if_no_acl: bool | None
) -> DecisionRecord:
    if super_users:
        record = record._replace(super_users=frozenset(map(principal_of, super_users)))
    return record if allow_if_no_acl is None else record._replace(allows_if_no_acl=allow_if_no_acl)


def _declared(file: Path) -> frozenset[AclBinding]:
    """Return the ACLs of a declared state.

    :raises StateFileError: If it is not valid.
    :raises CommandError: If it has no ACLs.
    """
    from barnabas.declared.parser import read_state
    from barnabas.declared.state import Section

    state = read_state(file)
    if Section.ACLS not in state.sections:
        raise wrong_use(
            f"{file} declares no ACLs", "'barnabas export --section acls' shows those of the cluster"
        )
    return state.acls


def _as_json(decision: AclDecision) -> dict[str, object]:
    row = as_row(decision) | {"last used": format_timestamp(decision.last_used_ms)}
    del row["allowed"]
    return row


def _print(title: str, decisions: Sequence[AclDecision]) -> None:
    if decisions:
        print(title)
        rows = [{**_as_json(each), "name": _ANY if each.name is None else each.name} for each in decisions]
        print_table(tuple(rows[0]), [tuple(row.values()) for row in rows])
