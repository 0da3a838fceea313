"""`barnabas transactions`: list, describe, abort and terminate transactions, show producers."""

from typing import Annotated

import typer

from barnabas.cli import candidates, partitions
from barnabas.cli.failures import handle_errors, wrong_use
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="Show transactions and producers, abort hanging transactions.", no_args_is_help=True)

Partition = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC:PARTITION",
        help="Partition, such as orders:0.",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]


@app.command("list")
@handle_errors
def list_transactions(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only transactions in this state, such as Ongoing; may be repeated."),
    ] = None,
    producer_id: Annotated[
        list[int] | None,
        typer.Option("--producer-id", help="Only transactions of this producer id; may be repeated."),
    ] = None,
    longer_than_ms: Annotated[
        int,
        typer.Option(
            "--longer-than-ms",
            min=-1,
            help="Only transactions that have been open for more than this many milliseconds.",
        ),
    ] = -1,
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="Only ids that match this regular expression.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List transactional ids and the states of their transactions."""
    from barnabas.cli.work import transactions

    filters = transactions.TransactionFilter(state or [], producer_id or [], longer_than_ms, pattern)
    transactions.show_list(bootstrap, filters, as_json=as_json)


@app.command("describe")
@handle_errors
def describe_transactions(
    transactional_id: Annotated[
        str,
        typer.Argument(
            metavar="TRANSACTIONAL_ID",
            help="Transactional id.",
            show_default=False,
            autocompletion=candidates.transactional_ids,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the state of a transactional id in its coordinator."""
    from barnabas.cli.work import transactions

    transactions.describe(bootstrap, transactional_id, as_json=as_json)


@app.command("producers")
@handle_errors
def show_producers(
    partition: Partition, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Show the idempotent producers of a partition, and the start offsets of their open transactions."""
    topic, index = _partition(partition)
    from barnabas.cli.work import transactions

    transactions.show_producers(bootstrap, (topic, index), as_json=as_json)


@app.command("abort")
@handle_errors
def abort_transaction(
    partition: Partition,
    start_offset: Annotated[
        int,
        typer.Option(
            "--start-offset",
            min=0,
            help="Offset of the first record of the transaction, as shown by 'producers'.",
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Abort a hanging transaction in one partition, one that its coordinator no longer knows."""
    topic, index = _partition(partition)
    from barnabas.cli.work import transactions

    transactions.abort(bootstrap, (topic, index), start_offset, as_json=as_json)


@app.command("terminate")
@handle_errors
def terminate_transaction(
    transactional_id: Annotated[
        str,
        typer.Argument(
            metavar="TRANSACTIONAL_ID",
            help="Transactional id.",
            show_default=False,
            autocompletion=candidates.transactional_ids,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Fence the producer of a transactional id, and abort its open transaction in all partitions."""
    from barnabas.cli.work import transactions

    transactions.terminate(bootstrap, transactional_id, as_json=as_json)


def _partition(text: str) -> tuple[str, int]:
    topic, index = partitions.parse_partition(text)
    if index is None:
        message = f"'{text}': a partition is required, as in {topic}:0"
        raise wrong_use(message)
    return topic, index
