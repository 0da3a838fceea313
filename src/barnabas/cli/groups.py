"""`barnabas groups`: list, describe and delete groups, manage their offsets and members."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="List, describe and delete groups, show and change their offsets.", no_args_is_help=True
)

Group = Annotated[
    str,
    typer.Argument(
        metavar="GROUP", help="Id of the group.", show_default=False, autocompletion=candidates.groups
    ),
]
Groups = Annotated[
    list[str],
    typer.Argument(
        metavar="GROUP...", help="Ids of the groups.", show_default=False, autocompletion=candidates.groups
    ),
]
Partitions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPIC[:PARTITION]...]",
        help="Partitions (default: all that the group reads).",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]


@app.command("list")
@handle_errors
def list_groups(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only groups in this state, such as Stable or Empty; may be repeated."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--type", help="Only groups of this type, such as classic or consumer; may be repeated."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List groups."""
    from barnabas.cli.work import groups

    groups.show_list(bootstrap, state or [], kind or [], as_json=as_json)


@app.command("describe")
@handle_errors
def describe_groups(names: Groups, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show groups, their members, and the partitions assigned to each member."""
    from barnabas.cli.work import groups

    groups.describe(bootstrap, names, as_json=as_json)


@app.command("explain")
@handle_errors
def explain_group(
    name: Group,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    last: Annotated[int, typer.Option("--last", min=1, max=100, help="Number of rebalances to show.")] = 10,
    as_json: Json = False,
) -> None:
    """Explain why a group rebalanced: members that joined, left or timed out, durations and assignments."""
    from barnabas.cli.work import rebalances

    rebalances.explain(bootstrap, name, last, as_json=as_json)


@app.command("delete")
@handle_errors
def delete_groups(names: Groups, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Delete groups that have no members, with their offsets."""
    from barnabas.cli.work import groups

    groups.delete(bootstrap, names, as_json=as_json)


@app.command("offsets")
@handle_errors
def show_offsets(
    name: Group,
    partition_args: Partitions = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the committed offset and the lag of every partition that a group reads."""
    requested = (
        None if partition_args is None else [partitions.parse_partition(text) for text in partition_args]
    )
    from barnabas.cli.work import group_offsets

    group_offsets.show(bootstrap, name, requested, as_json=as_json)


@app.command("reset-offsets")
@handle_errors
def reset_offsets(
    name: Group,
    partition_args: Partitions = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="The first offset of each partition.")
    ] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="The end of each partition.")] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="This offset, clamped to the range of the log.")
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option(
            "--to-time",
            metavar="TIME",
            help="The first record from this time on: 2026-01-31T09:30, 1767225600000 or 10m (10 minutes ago).",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the offsets without committing them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reset the committed offsets of a group that has no members."""
    requested = (
        None if partition_args is None else [partitions.parse_partition(text) for text in partition_args]
    )
    from barnabas.cli.work import group_offsets

    target = group_offsets.target(earliest=to_earliest, latest=to_latest, offset=to_offset, time=to_time)
    group_offsets.reset(bootstrap, name, requested, target, dry_run=dry_run, as_json=as_json)


@app.command("delete-offsets")
@handle_errors
def delete_offsets(
    name: Group,
    partition_args: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]...",
            help="Partitions whose committed offsets are deleted.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Delete committed offsets of a group for topics that it is not subscribed to."""
    requested = [partitions.parse_partition(text) for text in partition_args]
    from barnabas.cli.work import group_offsets

    group_offsets.delete(bootstrap, name, requested, as_json=as_json)


@app.command("remove-members")
@handle_errors
def remove_members(
    name: Group,
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instance",
            metavar="ID",
            help="Static member to remove, by its group.instance.id; may be repeated.",
        ),
    ] = None,
    members: Annotated[
        list[str] | None,
        typer.Option(
            "--member",
            metavar="ID",
            help="Member to remove, by its id as shown by 'describe'; may be repeated.",
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Remove members from a classic group, such as static members that will not return."""
    from barnabas.cli.work import groups

    groups.remove_members(bootstrap, name, instances or [], members or [], as_json=as_json)
