"""`barnabas log-dirs`: what lies where on a broker, and moving it."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, Wait

app = typer.Typer(
    help="See what lies in the log directories of brokers, and move it between them.", no_args_is_help=True
)

Broker = Annotated[
    int | None, typer.Option("--broker", metavar="ID", help="Which broker; needed when there are several.")
]


@app.command("describe")
@handle_errors
def describe_log_dirs(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC[:PARTITION]...]",
            help="Only these; else all.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    broker: Annotated[
        int | None, typer.Option("--broker", metavar="ID", help="Only this broker; else all of them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show directories, the room on their volumes, and the replicas in them."""
    wanted = None if places is None else [partitions.place(text) for text in places]
    from barnabas.cli.work import log_dirs

    log_dirs.describe(bootstrap, wanted, broker, as_json=as_json)


@app.command("move")
@handle_errors
def move_replicas(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIRECTORY",
            help="The path, as log.dirs of the broker has it.",
            autocompletion=candidates.log_dirs,
        ),
    ],
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]...",
            help="What to move there.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    broker: Broker = None,
    wait_s: Wait = None,
    as_json: Json = False,
) -> None:
    """Begin to move replicas of a broker to another of its directories; 'describe' shows how far it is."""
    wanted = [partitions.place(text) for text in places]
    from barnabas.cli.work import log_dirs

    log_dirs.move(bootstrap, directory, wanted, broker, wait_s=wait_s, as_json=as_json)
