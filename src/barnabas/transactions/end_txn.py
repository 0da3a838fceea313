"""EndTxn: commit or abort a transaction, by its producer, by fencing or by timeout (KIP-98, KIP-890)."""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.transactions.errors import concurrent, invalid_state, producer_fenced, unknown_mapping
from barnabas.transactions.states import TransactionState
from barnabas.transactions.transaction import (
    EPOCH_BUMPS_LEVEL,
    EPOCH_MAX,
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
)

_T = TransactionState


class EndTxn(NamedTuple):
    """A request to end a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    client_version: int  #: the transaction.version of the request's version


def decide_end(
    transaction: TransactionMetadata | None, request: EndTxn, now_ms: int, next_id: Callable[[], int]
) -> TransactionMetadata | None:
    """Return the transaction with its outcome decided (PrepareCommit, PrepareAbort); None if it has this outcome
    already.

    :param next_id: Returns a new producer id.
    :raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, or
        those of `next_id`.
    """
    if transaction is None:
        raise unknown_mapping(request.transactional_id, request.producer_id)
    if request.client_version >= EPOCH_BUMPS_LEVEL:
        return _decide_end_with_bump(transaction, request, now_ms, next_id)
    return _decide_end(transaction, request, now_ms)


def _decide_end(transaction: TransactionMetadata, request: EndTxn, now_ms: int) -> TransactionMetadata | None:
    """Decide for clients without epoch bumps: a repeated request with the same epoch is a retry."""
    if request.producer_id != transaction.producer_id:
        raise unknown_mapping(request.transactional_id, request.producer_id)
    if request.producer_epoch != transaction.producer_epoch:
        raise producer_fenced(transaction, request.producer_id, request.producer_epoch)
    if transaction.is_prepared:
        raise concurrent(transaction)
    if transaction.state is _T.ONGOING:
        return _prepared(transaction, request.commit, now_ms, request.client_version, NO_PRODUCER_ID)
    if transaction.state is (_T.COMPLETE_COMMIT if request.commit else _T.COMPLETE_ABORT):
        return None
    raise invalid_state(transaction, commit=request.commit)


def _decide_end_with_bump(
    transaction: TransactionMetadata, request: EndTxn, now_ms: int, next_id: Callable[[], int]
) -> TransactionMetadata | None:
    """Decide for clients whose epoch increases with each transaction: the epoch distinguishes retries."""
    if transaction.is_prepared:
        raise concurrent(transaction)
    is_retry_with_next_id = (
        transaction.previous_producer_id == request.producer_id
        and request.producer_epoch == LAST_EPOCH
        and transaction.producer_epoch == 0
    )
    is_retry = is_retry_with_next_id or transaction.producer_epoch == request.producer_epoch + 1
    if request.producer_id != transaction.producer_id and not is_retry_with_next_id:
        raise unknown_mapping(request.transactional_id, request.producer_id)
    is_complete = transaction.state in (_T.COMPLETE_COMMIT, _T.COMPLETE_ABORT)
    if request.producer_epoch != transaction.producer_epoch and not (is_retry and is_complete):
        raise producer_fenced(transaction, request.producer_id, request.producer_epoch)
    if is_retry and is_complete:
        if transaction.state is (_T.COMPLETE_COMMIT if request.commit else _T.COMPLETE_ABORT):
            return None
        raise invalid_state(transaction, commit=request.commit)
    if request.commit and transaction.state is not _T.ONGOING:
        raise invalid_state(transaction, commit=True)
    next_producer_id = next_id() if transaction.is_epoch_exhausted else NO_PRODUCER_ID
    return _prepared(transaction, request.commit, now_ms, request.client_version, next_producer_id)


def fenced(
    transaction: TransactionMetadata, now_ms: int, level: int, next_id: Callable[[], int]
) -> TransactionMetadata:
    """Return the transaction prepared for an abort, with an epoch that fences its producer.

    :param level: The cluster's transaction.version.
    :raises KafkaError: Those of `next_id`.
    """
    if level >= EPOCH_BUMPS_LEVEL:
        next_producer_id = next_id() if transaction.is_epoch_exhausted else NO_PRODUCER_ID
        fencing = transaction.moved(_T.PREPARE_EPOCH_FENCE)
        return _prepared(fencing, False, now_ms, level, next_producer_id)
    epoch = min(transaction.producer_epoch + 1, EPOCH_MAX)
    fencing = transaction.moved(_T.PREPARE_EPOCH_FENCE, producer_epoch=epoch, last_epoch=NO_EPOCH)
    return _prepared(fencing, False, now_ms, 0, NO_PRODUCER_ID)


def _prepared(
    transaction: TransactionMetadata, commit: bool, now_ms: int, client_version: int, next_producer_id: int
) -> TransactionMetadata:
    has_partitions = transaction.state in (_T.ONGOING, _T.PREPARE_EPOCH_FENCE)
    epochs = {"producer_epoch": transaction.producer_epoch, "last_epoch": transaction.last_epoch}
    if client_version >= EPOCH_BUMPS_LEVEL:
        bumped = min(transaction.producer_epoch + 1, EPOCH_MAX)
        epochs = {"producer_epoch": bumped, "last_epoch": transaction.producer_epoch}
    return transaction.moved(
        _T.PREPARE_COMMIT if commit else _T.PREPARE_ABORT,
        next_producer_id=next_producer_id,
        started_ms=transaction.started_ms if has_partitions else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
        **epochs,
    )


def complete(transaction: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return the transaction after all markers are written; the next producer id, if there is one, replaces the
    previous one.
    """
    producer_id, producer_epoch = transaction.producer_id, transaction.producer_epoch
    if transaction.bumps_epochs and transaction.next_producer_id != NO_PRODUCER_ID:
        producer_id, producer_epoch = transaction.next_producer_id, 0
    return transaction.moved(
        _T.COMPLETE_COMMIT if transaction.state is _T.PREPARE_COMMIT else _T.COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
