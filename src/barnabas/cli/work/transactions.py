"""What `barnabas transactions` does."""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.cli.output import print_json, print_table
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.times import moment
from barnabas.client.admin.transactions import Transactions

_LIST_COLUMNS = ("transactional id", "producer", "state")
_COLUMNS = (
    "transactional id",
    "state",
    "producer",
    "epoch",
    "timeout ms",
    "since",
    "coordinator",
    "partitions",
)
_PRODUCER_COLUMNS = (
    "producer",
    "epoch",
    "last sequence",
    "last written",
    "coordinator epoch",
    "began at offset",
)


class TransactionFilter(NamedTuple):
    """Filters; what is empty, negative or None lets everything pass."""

    states: Sequence[str]
    producer_ids: Sequence[int]
    longer_than_ms: int
    pattern: str | None


def show_list(bootstrap: str, wanted: TransactionFilter, *, as_json: bool) -> None:
    """Print transactional ids."""
    found = with_cluster(
        bootstrap,
        lambda cluster: Transactions(cluster).list(
            wanted.states,
            wanted.producer_ids,
            longer_than_ms=wanted.longer_than_ms,
            pattern=wanted.pattern,
        ),
    )
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        print_table(_LIST_COLUMNS, found)


def describe(bootstrap: str, transactional_id: str, *, as_json: bool) -> None:
    """Print what the coordinator knows.

    :raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND.
    """
    found = with_cluster(bootstrap, lambda cluster: Transactions(cluster).describe(transactional_id))
    if as_json:
        print_json(found._asdict() | {"partitions": [place._asdict() for place in found.partitions]})
        return
    row = (
        found.transactional_id,
        found.state,
        found.producer_id,
        found.producer_epoch,
        found.timeout_ms,
        moment(found.started_ms),
        found.coordinator,
        ", ".join(map(str, found.partitions)),
    )
    print_table(_COLUMNS, [row])


def show_producers(bootstrap: str, place: tuple[str, int], *, as_json: bool) -> None:
    """Print the producers of a partition."""
    found = with_cluster(bootstrap, lambda cluster: Transactions(cluster).producers(TopicPartition(*place)))
    if as_json:
        print_json([each._asdict() for each in found])
        return
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            moment(each.last_timestamp_ms),
            each.coordinator_epoch,
            "" if each.transaction_start_offset is None else each.transaction_start_offset,
        )
        for each in found
    ]
    print_table(_PRODUCER_COLUMNS, rows)


def abort(bootstrap: str, place: tuple[str, int], start_offset: int, *, as_json: bool) -> None:
    """Abort the transaction that began there.

    :raises KafkaError: INVALID_TXN_STATE when none did.
    """
    partition = TopicPartition(*place)
    found = with_cluster(bootstrap, lambda cluster: Transactions(cluster).abort(partition, start_offset))
    if as_json:
        print_json(found._asdict())
    else:
        print(f"{partition}: the transaction of producer {found.producer_id} is aborted")


def terminate(bootstrap: str, transactional_id: str, *, as_json: bool) -> None:
    """Fence the producer of an id, and say so.

    :raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND.
    """
    before = with_cluster(bootstrap, lambda cluster: Transactions(cluster).terminate(transactional_id))
    if as_json:
        print_json(
            {"transactional_id": transactional_id, "producer_id": before.producer_id, "was": before.state}
        )
    else:
        print(
            f"{transactional_id}: producer {before.producer_id} is fenced, its transaction was {before.state}"
        )
