"""EndTxn: commit or abort a transaction, by its producer, by fencing or by timeout (KIP-98, KIP-890)."""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.transactions.refusals import concurrent, invalid_state, producer_fenced, unknown_mapping
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
    known: TransactionMetadata | None, asked: EndTxn, now_ms: int, next_id: Callable[[], int]
) -> TransactionMetadata | None:
    """Return the transaction with its outcome decided (PrepareCommit, PrepareAbort); None if it has this outcome
    already.

    :param next_id: Returns a new producer id.
    :raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, or
        those of `next_id`.
    """
    if known is None:
        raise unknown_mapping(asked.transactional_id, asked.producer_id)
    if asked.client_version >= EPOCH_BUMPS_LEVEL:
        return _decide_end_with_bump(known, asked, now_ms, next_id)
    return _decide_end(known, asked, now_ms)


def _decide_end(known: TransactionMetadata, asked: EndTxn, now_ms: int) -> TransactionMetadata | None:
    """Decide for clients without epoch bumps: a repeated request with the same epoch is a retry."""
    if asked.producer_id != known.producer_id:
        raise unknown_mapping(asked.transactional_id, asked.producer_id)
    if asked.producer_epoch != known.producer_epoch:
        raise producer_fenced(known, asked.producer_id, asked.producer_epoch)
    if known.is_prepared:
        raise concurrent(known)
    if known.state is _T.ONGOING:
        return _prepared(known, asked.commit, now_ms, asked.client_version, NO_PRODUCER_ID)
    if known.state is (_T.COMPLETE_COMMIT if asked.commit else _T.COMPLETE_ABORT):
        return None
    raise invalid_state(known, commit=asked.commit)


def _decide_end_with_bump(
    known: TransactionMetadata, asked: EndTxn, now_ms: int, next_id: Callable[[], int]
) -> TransactionMetadata | None:
    """Decide for clients whose epoch increases with each transaction: the epoch distinguishes retries."""
    if known.is_prepared:
        raise concurrent(known)
    is_retry_with_next_id = (
        known.previous_producer_id == asked.producer_id
        and asked.producer_epoch == LAST_EPOCH
        and known.producer_epoch == 0
    )
    is_retry = is_retry_with_next_id or known.producer_epoch == asked.producer_epoch + 1
    if asked.producer_id != known.producer_id and not is_retry_with_next_id:
        raise unknown_mapping(asked.transactional_id, asked.producer_id)
    is_complete = known.state in (_T.COMPLETE_COMMIT, _T.COMPLETE_ABORT)
    if asked.producer_epoch != known.producer_epoch and not (is_retry and is_complete):
        raise producer_fenced(known, asked.producer_id, asked.producer_epoch)
    if is_retry and is_complete:
        if known.state is (_T.COMPLETE_COMMIT if asked.commit else _T.COMPLETE_ABORT):
            return None
        raise invalid_state(known, commit=asked.commit)
    if asked.commit and known.state is not _T.ONGOING:
        raise invalid_state(known, commit=True)
    next_producer_id = next_id() if known.is_epoch_exhausted else NO_PRODUCER_ID
    return _prepared(known, asked.commit, now_ms, asked.client_version, next_producer_id)


def fenced(
    known: TransactionMetadata, now_ms: int, level: int, next_id: Callable[[], int]
) -> TransactionMetadata:
    """Return the transaction prepared for an abort, with an epoch that fences its producer.

    :param level: The cluster's transaction.version.
    :raises KafkaError: Those of `next_id`.
    """
    if level >= EPOCH_BUMPS_LEVEL:
        next_producer_id = next_id() if known.is_epoch_exhausted else NO_PRODUCER_ID
        fencing = known.moved(_T.PREPARE_EPOCH_FENCE)
        return _prepared(fencing, False, now_ms, level, next_producer_id)
    epoch = min(known.producer_epoch + 1, EPOCH_MAX)
    fencing = known.moved(_T.PREPARE_EPOCH_FENCE, producer_epoch=epoch, last_epoch=NO_EPOCH)
    return _prepared(fencing, False, now_ms, 0, NO_PRODUCER_ID)


def _prepared(
    known: TransactionMetadata, commit: bool, now_ms: int, client_version: int, next_producer_id: int
) -> TransactionMetadata:
    has_partitions = known.state in (_T.ONGOING, _T.PREPARE_EPOCH_FENCE)
    epochs = {"producer_epoch": known.producer_epoch, "last_epoch": known.last_epoch}
    if client_version >= EPOCH_BUMPS_LEVEL:
        bumped = min(known.producer_epoch + 1, EPOCH_MAX)
        epochs = {"producer_epoch": bumped, "last_epoch": known.producer_epoch}
    return known.moved(
        _T.PREPARE_COMMIT if commit else _T.PREPARE_ABORT,
        next_producer_id=next_producer_id,
        started_ms=known.started_ms if has_partitions else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
        **epochs,
    )


def complete(known: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return the transaction after all markers are written; the next producer id, if there is one, takes over."""
    producer_id, producer_epoch = known.producer_id, known.producer_epoch
    if known.bumps_epochs and known.next_producer_id != NO_PRODUCER_ID:
        producer_id, producer_epoch = known.next_producer_id, 0
    return known.moved(
        _T.COMPLETE_COMMIT if known.state is _T.PREPARE_COMMIT else _T.COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
