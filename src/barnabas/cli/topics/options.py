"""Arguments and options that several commands on topics have."""

from typing import Annotated

import typer

from barnabas.cli.support import candidates

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="TOPIC...", help="Names of topics.", show_default=False, autocompletion=candidates.topics
    ),
]
