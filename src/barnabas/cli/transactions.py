"""`barnabas transactions`: list, describe, abort and terminate transactions, show producers."""

from typing import Annotated

import typer

from barnabas.base.ids import TopicPartition
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json, print_table
from barnabas.cli.support.partitions import parse_partition
from barnabas.cli.support.times import format_timestamp
from barnabas.client.admin.transactions import Transactions

_LIST_COLUMNS = ("transactional id", "producer", "state")
_COLUMNS = (
    "transactional id",
    "state",
    "producer",
    "epoch",
    "timeout ms",
    "started",
    "coordinator",
    "partitions",
)
_PRODUCER_COLUMNS = (
    "producer",
    "epoch",
    "last sequence",
    "last timestamp",
    "coordinator epoch",
    "transaction start offset",
)

TransactionalId = Annotated[
    str,
    typer.Argument(
        metavar="TRANSACTIONAL_ID",
        help="Transactional id.",
        show_default=False,
        autocompletion=candidates.transactional_ids,
    ),
]
Partition = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC:PARTITION",
        help="Partition, such as orders:0.",
        show_default=False,
        autocompletion=candidates.partitions,
    ),
]


@command(
    "list",
    example="transactions list --longer-than-ms 60000",
    apis=("ListTransactions",),
    needs=("describe transactional-id",),
    hides=True,
)
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
    transactions = with_cluster(
        bootstrap,
        lambda cluster: Transactions(cluster).list(
            state or [],
            producer_id or [],
            longer_than_ms=longer_than_ms,
            pattern=pattern,
        ),
    )
    if as_json:
        print_json([transaction._asdict() for transaction in transactions])
    else:
        print_table(_LIST_COLUMNS, transactions)


@command(
    "describe",
    example="transactions describe payments-1",
    apis=("DescribeTransactions",),
    needs=("describe transactional-id",),
)
def describe_transaction(
    transactional_id: TransactionalId, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Show the state of a transactional id in its coordinator."""
    transaction = with_cluster(bootstrap, lambda cluster: Transactions(cluster).describe(transactional_id))
    if as_json:
        print_json(transaction._asdict() | {"partitions": [tp._asdict() for tp in transaction.partitions]})
        return
    row = (
        transaction.transactional_id,
        transaction.state,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.timeout_ms,
        format_timestamp(transaction.started_ms),
        transaction.coordinator,
        ", ".join(map(str, transaction.partitions)),
    )
    print_table(_COLUMNS, [row])


@command(
    "producers", example="transactions producers orders:0", apis=("DescribeProducers",), needs=("read topic",)
)
def show_producers(
    partition: Partition, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Show the idempotent producers of a partition, and the start offsets of their open transactions."""
    tp = _parse_tp(partition)
    producers = with_cluster(bootstrap, lambda cluster: Transactions(cluster).producers(tp))
    if as_json:
        print_json([producer._asdict() for producer in producers])
        return
    rows = [
        (
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            format_timestamp(producer.last_timestamp_ms),
            producer.coordinator_epoch,
            "" if producer.transaction_start_offset is None else producer.transaction_start_offset,
        )
        for producer in producers
    ]
    print_table(_PRODUCER_COLUMNS, rows)


@command(
    "abort",
    example="transactions abort orders:0 --start-offset 4711",
    apis=("DescribeProducers", "WriteTxnMarkers"),
    needs=("read topic", "alter cluster"),
)
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
    tp = _parse_tp(partition)
    producer = with_cluster(bootstrap, lambda cluster: Transactions(cluster).abort(tp, start_offset))
    if as_json:
        print_json(producer._asdict())
    else:
        print(f"{tp}: aborted the transaction of producer {producer.producer_id}")


@command(
    "terminate",
    example="transactions terminate payments-1",
    apis=("DescribeTransactions", "InitProducerId"),
    needs=("describe transactional-id", "write transactional-id"),
)
def terminate_transaction(
    transactional_id: TransactionalId, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Fence the producer of a transactional id, and abort its open transaction in all partitions."""
    before = with_cluster(bootstrap, lambda cluster: Transactions(cluster).terminate(transactional_id))
    if as_json:
        print_json(
            {"transactional_id": transactional_id, "producer_id": before.producer_id, "was": before.state}
        )
    else:
        print(
            f"{transactional_id}: fenced producer {before.producer_id}, whose transaction was {before.state}"
        )


def _parse_tp(text: str) -> TopicPartition:
    topic, index = parse_partition(text)
    if index is None:
        message = f"'{text}': a partition is required, as in {topic}:0"
        raise wrong_use(message)
    return TopicPartition(topic, index)


app = command_group(
    list_transactions, describe_transaction, show_producers, abort_transaction, terminate_transaction
)
