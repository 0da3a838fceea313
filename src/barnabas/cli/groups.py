"""`barnabas groups`: who is in them, the offsets that they committed, and setting those."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="See groups and their offsets, set them, delete them.", no_args_is_help=True)

Group = Annotated[
    str,
    typer.Argument(
        metavar="GROUP", help="The id of the group.", show_default=False, autocompletion=candidates.groups
    ),
]
Groups = Annotated[
    list[str],
    typer.Argument(
        metavar="GROUP...", help="Their ids.", show_default=False, autocompletion=candidates.groups
    ),
]
Places = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPIC[:PARTITION]...]",
        help="Partitions; by default all that the group reads.",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]


@app.command("list")
@handle_errors
def list_groups(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only in this state, as Stable or Empty; may repeat.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", help="Only of this type, classic or consumer; may repeat.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List groups."""
    from barnabas.cli.work import groups

    groups.show_list(bootstrap, state or [], kind or [], as_json=as_json)


@app.command("describe")
@handle_errors
def describe_groups(names: Groups, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show members and what each of them reads."""
    from barnabas.cli.work import groups

    groups.describe(bootstrap, names, as_json=as_json)


@app.command("delete")
@handle_errors
def delete_groups(names: Groups, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Delete groups that have no members, with their offsets."""
    from barnabas.cli.work import groups

    groups.delete(bootstrap, names, as_json=as_json)


@app.command("offsets")
@handle_errors
def show_offsets(
    name: Group, places: Places = None, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Show the committed offset and the lag of every partition that a group reads."""
    wanted = None if places is None else [partitions.place(text) for text in places]
    from barnabas.cli.work import group_offsets

    group_offsets.show(bootstrap, name, wanted, as_json=as_json)


@app.command("reset-offsets")
@handle_errors
def reset_offsets(
    name: Group,
    places: Places = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="Where each partition begins.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Where each partition ends.")] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="This offset, clamped to the range of the log.")
    ] = None,
    to_time: Annotated[
        str | None,
        typer.Option("--to-time", metavar="TIME", help="The first record then: 2026-01-31T09:30, 10m."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be committed.")] = False,
    as_json: Json = False,
) -> None:
    """Commit other offsets for a group that has no members."""
    wanted = None if places is None else [partitions.place(text) for text in places]
    from barnabas.cli.work import group_offsets

    target = group_offsets.target(earliest=to_earliest, latest=to_latest, offset=to_offset, time=to_time)
    group_offsets.reset(bootstrap, name, wanted, target, dry_run=dry_run, as_json=as_json)


@app.command("delete-offsets")
@handle_errors
def delete_offsets(
    name: Group,
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]...",
            help="What to forget.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Forget what a group has committed for topics that it does not read any more."""
    wanted = [partitions.place(text) for text in places]
    from barnabas.cli.work import group_offsets

    group_offsets.delete(bootstrap, name, wanted, as_json=as_json)


@app.command("remove-members")
@handle_errors
def remove_members(
    name: Group,
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instance", metavar="ID", help="A static member, by its group.instance.id; may repeat."
        ),
    ] = None,
    members: Annotated[
        list[str] | None,
        typer.Option("--member", metavar="ID", help="A member, by the id that 'describe' shows; may repeat."),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Make members leave a classic group, such as static ones that do not come back."""
    from barnabas.cli.work import groups

    groups.remove_members(bootstrap, name, instances or [], members or [], as_json=as_json)
