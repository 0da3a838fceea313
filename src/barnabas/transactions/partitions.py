"""AddPartitionsToTxn and AddOffsetsToTxn: the partitions of a transaction (KIP-98, KIP-890)."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.transactions.errors import concurrent, producer_fenced, unknown_mapping
from barnabas.transactions.states import TransactionState
from barnabas.transactions.transaction import TransactionMetadata
from barnabas.wire.errors import ErrorCode


class Addition(NamedTuple):
    """A producer and the partitions that it adds."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Collection[TopicPartition]
    client_version: int = 0  #: the transaction.version of the request's version


def decide_add(
    known: TransactionMetadata | None, addition: Addition, now_ms: int
) -> TransactionMetadata | None:
    """Return the open transaction with the partitions; None if they are in it already.

    :raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    if known is not None and known.is_prepared:
        raise concurrent(known)
    transaction = _check_producer(known, addition)
    is_open = transaction.state is TransactionState.ONGOING
    if is_open and transaction.partitions.issuperset(addition.partitions):
        return None
    return transaction.moved(
        TransactionState.ONGOING,
        partitions=transaction.partitions.union(addition.partitions),
        started_ms=transaction.started_ms if is_open else now_ms,
        updated_ms=now_ms,
        client_version=addition.client_version,
    )


def verify(known: TransactionMetadata | None, addition: Addition) -> Mapping[TopicPartition, ErrorCode]:
    """Return for each partition whether it is in the producer's open transaction: NONE or TRANSACTION_ABORTABLE.

    :raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    transaction = _check_producer(known, addition)
    if transaction.is_prepared:
        raise concurrent(transaction)
    return {
        partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in addition.partitions
    }


def _check_producer(known: TransactionMetadata | None, addition: Addition) -> TransactionMetadata:
    if known is None or known.producer_id != addition.producer_id:
        raise unknown_mapping(addition.transactional_id, addition.producer_id)
    if known.producer_epoch != addition.producer_epoch:
        raise producer_fenced(known, addition.producer_id, addition.producer_epoch)
    return known
