"""Errors of the transaction coordinator."""

from barnabas.transactions.transaction import TransactionMetadata
from barnabas.wire.errors import ErrorCode, KafkaError


def unknown_mapping(transactional_id: str, producer_id: int) -> KafkaError:
    """Return the error if the transactional id has another producer id, or none."""
    message = f"Transactional id '{transactional_id}' does not belong to producer id {producer_id}."
    return KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, message)


def producer_fenced(transaction: TransactionMetadata, producer_id: int, producer_epoch: int) -> KafkaError:
    """Return the error if another producer has the transactional id now."""
    message = (
        f"Producer {producer_id} with epoch {producer_epoch} does not have transactional id "
        f"'{transaction.transactional_id}' any longer: "
        "another producer has the id now, or a timeout has fenced this one."
    )
    return KafkaError(ErrorCode.PRODUCER_FENCED, message)


def concurrent(transaction: TransactionMetadata) -> KafkaError:
    """Return the error while the previous transaction is not complete; clients retry."""
    message = f"The last transaction of '{transaction.transactional_id}' is still being completed: retry."
    return KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, message)


def invalid_state(transaction: TransactionMetadata, *, commit: bool) -> KafkaError:
    """Return the error if the state does not allow this end of the transaction."""
    what = "committed" if commit else "aborted"
    message = f"Transactional id '{transaction.transactional_id}' is {transaction.state}: no transaction can be {what}."
    return KafkaError(ErrorCode.INVALID_TXN_STATE, message)
