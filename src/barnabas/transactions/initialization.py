"""InitProducerId for a transactional id: the producer gets it, and earlier ones are fenced (KIP-98, KIP-360)."""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.base.ids import ProducerIdAndEpoch
from barnabas.transactions.end_txn import fenced
from barnabas.transactions.errors import concurrent, producer_fenced
from barnabas.transactions.states import TransactionState
from barnabas.transactions.transaction import (
    LAST_EPOCH,
    NO_EPOCH,
    NO_TIMESTAMP,
    TransactionMetadata,
)


class Initialization(NamedTuple):
    """The request of a producer."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None  #: its present identity; None after a start


def decide_initialize(
    transaction: TransactionMetadata | None,
    request: Initialization,
    now_ms: int,
    level: int,
    next_id: Callable[[], int],
) -> TransactionMetadata:
    """Return the new state of the transactional id.

    Without an open transaction, the producer gets it with another epoch. An open transaction is aborted first
    (PrepareAbort), and the producer must retry.

    :param level: The cluster's transaction.version.
    :param next_id: Returns a new producer id.
    :raises KafkaError: CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, or those of `next_id`.
    """
    if transaction is None:
        transaction = TransactionMetadata(
            request.transactional_id, next_id(), NO_EPOCH, request.timeout_ms, TransactionState.EMPTY, now_ms
        )
    if transaction.is_prepared:
        raise concurrent(transaction)
    if request.expected is not None and not _is_known_producer(transaction, request.expected):
        raise producer_fenced(transaction, request.expected.producer_id, request.expected.producer_epoch)
    if transaction.state is TransactionState.ONGOING:
        return fenced(transaction, now_ms, level, next_id)
    if transaction.is_epoch_exhausted and (
        request.expected is None or request.expected.producer_epoch == transaction.producer_epoch
    ):
        return _with_new_producer_id(transaction, request, now_ms, next_id())
    epoch, last_epoch = _next_epoch(transaction, request.expected)
    return _with_next_epoch(transaction, request, now_ms, producer_epoch=epoch, last_epoch=last_epoch)


def _is_known_producer(transaction: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Return whether the request may be from the producer with the id; its epoch is checked later."""
    return (
        transaction.producer_epoch == NO_EPOCH
        or expected.producer_id == transaction.producer_id
        or (
            expected.producer_id == transaction.previous_producer_id
            and expected.producer_epoch >= LAST_EPOCH  # it has missed the id that replaced its own
        )
    )


def _next_epoch(transaction: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> tuple[int, int]:
    """Return the new epoch, and the previous one, with which the same producer may retry."""
    if expected is None:
        return transaction.producer_epoch + 1, NO_EPOCH
    if expected.producer_epoch == transaction.producer_epoch or transaction.producer_epoch == NO_EPOCH:
        return transaction.producer_epoch + 1, transaction.producer_epoch
    if expected.producer_epoch == transaction.last_epoch:
        return (
            transaction.producer_epoch,
            transaction.last_epoch,
        )  # the producer has missed the first response
    raise producer_fenced(transaction, expected.producer_id, expected.producer_epoch)


def _with_new_producer_id(
    transaction: TransactionMetadata, request: Initialization, now_ms: int, producer_id: int
) -> TransactionMetadata:
    last_epoch = NO_EPOCH if request.expected is None else transaction.producer_epoch
    return _with_next_epoch(
        transaction, request, now_ms, producer_id=producer_id, producer_epoch=0, last_epoch=last_epoch
    )


def _with_next_epoch(
    transaction: TransactionMetadata, request: Initialization, now_ms: int, **identity: int
) -> TransactionMetadata:
    return transaction.moved(
        TransactionState.EMPTY,
        timeout_ms=request.timeout_ms,
        updated_ms=now_ms,
        started_ms=NO_TIMESTAMP,
        partitions=frozenset(),
        **identity,
    )
