"""`barnabas records`: where records begin and end, and deleting old ones."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="See where the records of partitions begin and end, delete old ones.", no_args_is_help=True
)

Places = Annotated[
    list[str],
    typer.Argument(
        metavar="TOPIC[:PARTITION]...",
        help="Which partitions.",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]


@app.command("offsets")
@handle_errors
def list_offsets(
    places: Places,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="The first record from 2026-01-31T09:30, 1767225600000 or 10m ago on.",
        ),
    ] = None,
    committed: Annotated[
        bool, typer.Option("--committed", help="Up to where transactions are over, not up to the end.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show where partitions begin and end, their newest record, and the first record from a time on."""
    wanted = [partitions.place(text) for text in places]
    from barnabas.cli.work import records

    records.show_offsets(bootstrap, wanted, time, committed=committed, as_json=as_json)


@app.command("epoch-ends")
@handle_errors
def list_epoch_ends(
    places: Places,
    epoch: Annotated[int, typer.Option("--epoch", min=0, help="The epoch of a leader.", show_default=False)],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show where the epoch of a leader ended: what another has beyond that, it will drop."""
    wanted = [partitions.place(text) for text in places]
    from barnabas.cli.work import records

    records.show_epoch_ends(bootstrap, wanted, epoch, as_json=as_json)


@app.command("delete")
@handle_errors
def delete_records(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]=OFFSET...",
            help="Records before the offset go; =end deletes all that there are.",
            autocompletion=candidates.partitions,
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Delete the records before an offset. They do not come back."""
    wanted = [partitions.offset(text) for text in targets]
    from barnabas.cli.work import records

    records.delete(bootstrap, wanted, as_json=as_json)
