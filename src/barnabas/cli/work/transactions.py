"""Implementation of `barnabas transactions`."""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.cli.output import print_json, print_table
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.times import format_timestamp
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


class TransactionFilter(NamedTuple):
    """Filter of transactions; an empty, negative or None field matches all."""

    states: Sequence[str]
    producer_ids: Sequence[int]
    longer_than_ms: int
    pattern: str | None


def show_list(bootstrap: str, filters: TransactionFilter, *, as_json: bool) -> None:
    """Print the transactional ids that match."""
    transactions = with_cluster(
        bootstrap,
        lambda cluster: Transactions(cluster).list(
            filters.states,
            filters.producer_ids,
            longer_than_ms=filters.longer_than_ms,
            pattern=filters.pattern,
        ),
    )
    if as_json:
        print_json([transaction._asdict() for transaction in transactions])
    else:
        print_table(_LIST_COLUMNS, transactions)


def describe(bootstrap: str, transactional_id: str, *, as_json: bool) -> None:
    """Print the state of a transactional id.

    :raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND.
    """
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


def show_producers(bootstrap: str, partition: tuple[str, int], *, as_json: bool) -> None:
    """Print the producers of a partition."""
    tp = TopicPartition(*partition)
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


def abort(bootstrap: str, partition: tuple[str, int], start_offset: int, *, as_json: bool) -> None:
    """Abort the transaction that starts at this offset of the partition.

    :raises KafkaError: INVALID_TXN_STATE if no open transaction starts there.
    """
    tp = TopicPartition(*partition)
    producer = with_cluster(bootstrap, lambda cluster: Transactions(cluster).abort(tp, start_offset))
    if as_json:
        print_json(producer._asdict())
    else:
        print(f"{tp}: aborted the transaction of producer {producer.producer_id}")


def terminate(bootstrap: str, transactional_id: str, *, as_json: bool) -> None:
    """Fence the producer of a transactional id, and print the state that its transaction was in.

    :raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND.
    """
    before = with_cluster(bootstrap, lambda cluster: Transactions(cluster).terminate(transactional_id))
    if as_json:
        print_json(
            {"transactional_id": transactional_id, "producer_id": before.producer_id, "was": before.state}
        )
    else:
        print(
            f"{transactional_id}: fenced producer {before.producer_id}, whose transaction was {before.state}"
        )
