"""`barnabas transactions`: what is open, who writes, and ending what nobody ends."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors, wrong_use
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="See transactions and producers, abort what hangs.", no_args_is_help=True)

Partition = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC:PARTITION",
        help="The partition.",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]


@app.command("list")
@handle_errors
def list_transactions(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only in this state, as Ongoing; may repeat.")
    ] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option("--producer-id", help="Only of this producer; may repeat.")
    ] = None,
    longer_than_ms: Annotated[
        int, typer.Option("--longer-than-ms", min=-1, help="Only open for more milliseconds than this.")
    ] = -1,
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="Only ids that match this regular expression.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List transactional ids."""
    from barnabas.cli.work import transactions

    wanted = transactions.TransactionFilter(state or [], producer_id or [], longer_than_ms, pattern)
    transactions.show_list(bootstrap, wanted, as_json=as_json)


@app.command("describe")
@handle_errors
def describe_transactions(
    transactional_id: Annotated[
        str,
        typer.Argument(
            metavar="TRANSACTIONAL_ID",
            help="Which.",
            show_default=False,
            autocompletion=candidates.transactional_ids,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show what the coordinator knows of a transactional id."""
    from barnabas.cli.work import transactions

    transactions.describe(bootstrap, transactional_id, as_json=as_json)


@app.command("producers")
@handle_errors
def show_producers(
    partition: Partition, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Show the producers that a partition remembers, and where their open transactions began."""
    place = _partition(partition)
    from barnabas.cli.work import transactions

    transactions.show_producers(bootstrap, place, as_json=as_json)


@app.command("abort")
@handle_errors
def abort_transaction(
    partition: Partition,
    start_offset: Annotated[
        int, typer.Option("--start-offset", min=0, help="Where it began.", show_default=False)
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Abort a transaction in one partition, when its coordinator has forgotten it."""
    place = _partition(partition)
    from barnabas.cli.work import transactions

    transactions.abort(bootstrap, place, start_offset, as_json=as_json)


@app.command("terminate")
@handle_errors
def terminate_transaction(
    transactional_id: Annotated[
        str,
        typer.Argument(
            metavar="TRANSACTIONAL_ID",
            help="Which.",
            show_default=False,
            autocompletion=candidates.transactional_ids,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Fence the producer of a transactional id: what it has open is aborted everywhere."""
    from barnabas.cli.work import transactions

    transactions.terminate(bootstrap, transactional_id, as_json=as_json)


def _partition(text: str) -> tuple[str, int]:
    topic, index = partitions.place(text)
    if index is None:
        message = f"'{text}': say which partition, as in {topic}:0"
        raise wrong_use(message)
    return topic, index
