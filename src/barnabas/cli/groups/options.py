"""Arguments that several commands on groups have."""

from typing import Annotated

import typer

from barnabas.cli.support import candidates

GroupId = Annotated[
    str,
    typer.Argument(
        metavar="GROUP", help="Id of the group.", show_default=False, autocompletion=candidates.groups
    ),
]
GroupIds = Annotated[
    list[str],
    typer.Argument(
        metavar="GROUP...", help="Ids of the groups.", show_default=False, autocompletion=candidates.groups
    ),
]
