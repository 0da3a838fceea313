"""`barnabas metadata`: who serves, and what."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json


@handle_errors
def metadata(
    topic: Annotated[
        str | None,
        typer.Argument(help="Only this topic.", show_default=False, autocompletion=candidates.topics),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show brokers, topics and where partitions are."""
    from barnabas.cli.work import metadata as work

    work.show(bootstrap, topic, as_json=as_json)
