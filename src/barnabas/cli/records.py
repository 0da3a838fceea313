"""`barnabas records`: show the offsets of partitions, delete old records."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="Show the first and last offsets of partitions, delete old records.", no_args_is_help=True
)

Partitions = Annotated[
    list[str],
    typer.Argument(
        metavar="TOPIC[:PARTITION]...",
        help="Partitions to show.",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]


@app.command("offsets")
@handle_errors
def list_offsets(
    partition_args: Partitions,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="Also show the first record from this time on: 2026-01-31T09:30, 1767225600000 or 10m.",
        ),
    ] = None,
    committed: Annotated[
        bool,
        typer.Option(
            "--committed",
            help="Show the last stable offset instead of the high watermark (isolation.level=read_committed).",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the first and the end offset of partitions, the newest record, and the first record from a time on."""
    requested = [partitions.parse_partition(text) for text in partition_args]
    from barnabas.cli.work import records

    records.show_offsets(bootstrap, requested, time, committed=committed, as_json=as_json)


@app.command("epoch-ends")
@handle_errors
def list_epoch_ends(
    partition_args: Partitions,
    epoch: Annotated[int, typer.Option("--epoch", min=0, help="Leader epoch.", show_default=False)],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the end offset of a leader epoch; replicas truncate what they have of that epoch beyond it."""
    requested = [partitions.parse_partition(text) for text in partition_args]
    from barnabas.cli.work import records

    records.show_epoch_ends(bootstrap, requested, epoch, as_json=as_json)


@app.command("delete")
@handle_errors
def delete_records(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]=OFFSET...",
            help="Delete the records before this offset; =end deletes all records.",
            autocompletion=candidates.partitions,
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Delete the records before an offset. This cannot be undone."""
    requested = [partitions.parse_offset(text) for text in targets]
    from barnabas.cli.work import records

    records.delete(bootstrap, requested, as_json=as_json)
