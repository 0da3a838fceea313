"""`barnabas log-dirs`: describe log directories, move replicas between them."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, Wait

app = typer.Typer(
    help="Describe the log directories of brokers, and move replicas between them.", no_args_is_help=True
)

Broker = Annotated[
    int | None,
    typer.Option("--broker", metavar="ID", help="Id of the broker; required if there are several brokers."),
]


@app.command("describe")
@handle_errors
def describe_log_dirs(
    partition_args: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC[:PARTITION]...]",
            help="Partitions to show (default: all).",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    broker: Annotated[
        int | None, typer.Option("--broker", metavar="ID", help="Id of the broker (default: all brokers).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show log directories, the space on their volumes, and their replicas."""
    requested = (
        None if partition_args is None else [partitions.parse_partition(text) for text in partition_args]
    )
    from barnabas.cli.work import log_dirs

    log_dirs.describe(bootstrap, requested, broker, as_json=as_json)


@app.command("move")
@handle_errors
def move_replicas(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIRECTORY",
            help="Path of the new directory, as in log.dirs of the broker.",
            autocompletion=candidates.log_dirs,
        ),
    ],
    partition_args: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]...",
            help="Partitions whose replicas are moved.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    broker: Broker = None,
    wait_s: Wait = None,
    as_json: Json = False,
) -> None:
    """Start moving replicas of a broker to another of its log directories; 'describe' shows the progress."""
    requested = [partitions.parse_partition(text) for text in partition_args]
    from barnabas.cli.work import log_dirs

    log_dirs.move(bootstrap, directory, requested, broker, wait_s=wait_s, as_json=as_json)
