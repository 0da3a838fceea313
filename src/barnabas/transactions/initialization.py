"""InitProducerId for a transactional id: a producer takes it over, and earlier ones are fenced (KIP-98, KIP-360)."""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.transactions.end_txn import fenced
from barnabas.transactions.refusals import concurrent, producer_fenced
from barnabas.transactions.states import TransactionState
from barnabas.transactions.transaction import (
    LAST_EPOCH,
    NO_EPOCH,
    NO_TIMESTAMP,
    TransactionMetadata,
)


class ProducerIdAndEpoch(NamedTuple):
    """The identity in a producer's request."""

    producer_id: int
    producer_epoch: int


class Initialization(NamedTuple):
    """The request of a producer."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None  #: its present identity; None after a start


def decide_initialize(
    known: TransactionMetadata | None,
    asked: Initialization,
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
    if known is None:
        known = TransactionMetadata(
            asked.transactional_id, next_id(), NO_EPOCH, asked.timeout_ms, TransactionState.EMPTY, now_ms
        )
    if known.is_prepared:
        raise concurrent(known)
    if asked.expected is not None and not _is_known_producer(known, asked.expected):
        raise producer_fenced(known, asked.expected.producer_id, asked.expected.producer_epoch)
    if known.state is TransactionState.ONGOING:
        return fenced(known, now_ms, level, next_id)
    if known.is_epoch_exhausted and (
        asked.expected is None or asked.expected.producer_epoch == known.producer_epoch
    ):
        return _with_another_id(known, asked, now_ms, next_id())
    epoch, last_epoch = _bumped(known, asked.expected)
    return _taken_over(known, asked, now_ms, producer_epoch=epoch, last_epoch=last_epoch)


def _is_known_producer(known: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Return whether the request may be from the producer with the id; its epoch is checked later."""
    return (
        known.producer_epoch == NO_EPOCH
        or expected.producer_id == known.producer_id
        or (
            expected.producer_id == known.previous_producer_id
            and expected.producer_epoch >= LAST_EPOCH  # it has missed the id that replaced its own
        )
    )


def _bumped(known: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> tuple[int, int]:
    """Return the new epoch, and the previous one, with which the same producer may retry."""
    if expected is None:
        return known.producer_epoch + 1, NO_EPOCH
    if expected.producer_epoch == known.producer_epoch or known.producer_epoch == NO_EPOCH:
        return known.producer_epoch + 1, known.producer_epoch
    if expected.producer_epoch == known.last_epoch:
        return known.producer_epoch, known.last_epoch  # the producer has missed the first response
    raise producer_fenced(known, expected.producer_id, expected.producer_epoch)


def _with_another_id(
    known: TransactionMetadata, asked: Initialization, now_ms: int, producer_id: int
) -> TransactionMetadata:
    last_epoch = NO_EPOCH if asked.expected is None else known.producer_epoch
    return _taken_over(known, asked, now_ms, producer_id=producer_id, producer_epoch=0, last_epoch=last_epoch)


def _taken_over(
    known: TransactionMetadata, asked: Initialization, now_ms: int, **identity: int
) -> TransactionMetadata:
    return known.moved(
        TransactionState.EMPTY,
        timeout_ms=asked.timeout_ms,
        updated_ms=now_ms,
        started_ms=NO_TIMESTAMP,
        partitions=frozenset(),
        **identity,
    )
