"""`barnabas elections`: who leads partitions."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json


@handle_errors
def elections(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC[:PARTITION]...]",
            help="Only these; else all that need it.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean", help="Where nobody leads let a replica lead that is behind: RECORDS MAY BE LOST."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Elect leaders: preferred ones lead again."""
    wanted = [partitions.place(text) for text in places or []]
    from barnabas.cli.work import elections as work

    work.elect(bootstrap, wanted, unclean=unclean, as_json=as_json)
