"""`barnabas elections`: elect partition leaders."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json


@handle_errors
def elections(
    partition_args: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC[:PARTITION]...]",
            help="Partitions to elect leaders for (default: all that need an election).",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="For partitions without a leader, elect a replica that is not in sync: RECORDS MAY BE LOST.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Elect the preferred leaders of partitions, or with --unclean leaders for offline partitions."""
    requested = [partitions.parse_partition(text) for text in partition_args or []]
    from barnabas.cli.work import elections as work

    work.elect(bootstrap, requested, unclean=unclean, as_json=as_json)
