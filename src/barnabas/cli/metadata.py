"""`barnabas metadata`: show brokers and topics."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json


@handle_errors
def metadata(
    topic: Annotated[
        str | None,
        typer.Argument(
            help="Topic to show (default: all topics).", show_default=False, autocompletion=candidates.topics
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the brokers and topics of the cluster; with --json also the replicas of partitions."""
    from barnabas.cli.work import metadata as work

    work.show(bootstrap, topic, as_json=as_json)
