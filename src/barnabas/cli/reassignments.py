"""`barnabas reassignments`: list, start and cancel partition reassignments."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, Wait

app = typer.Typer(
    help="Move partitions to other brokers, list and cancel reassignments.", no_args_is_help=True
)


@app.command("list")
@handle_errors
def list_reassignments(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """List the partitions that are being reassigned."""
    from barnabas.cli.work import reassignments

    reassignments.show_list(bootstrap, as_json=as_json)


@app.command("start")
@handle_errors
def start_reassignments(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]=BROKER,...",
            help="New replicas of a partition or of a whole topic; the first is the preferred leader.",
            autocompletion=candidates.partitions,
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    keep_factor: Annotated[
        bool,
        typer.Option("--keep-replication-factor", help="Fail if this would change the number of replicas."),
    ] = False,
    wait_s: Wait = None,
    as_json: Json = False,
) -> None:
    """Start moving partitions to other brokers."""
    requested = [partitions.parse_reassignment(text) for text in targets]
    from barnabas.cli.work import reassignments

    reassignments.start(bootstrap, requested, keep_factor=keep_factor, wait_s=wait_s, as_json=as_json)


@app.command("cancel")
@handle_errors
def cancel_reassignments(
    partition_args: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]...",
            help="Partitions whose reassignment is cancelled.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Cancel reassignments; the partitions return to their original replicas."""
    requested = [partitions.parse_partition(text) for text in partition_args]
    from barnabas.cli.work import reassignments

    reassignments.cancel(bootstrap, requested, as_json=as_json)
