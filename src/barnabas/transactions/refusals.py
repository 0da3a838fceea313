"""Errors of the transaction coordinator."""

from barnabas.transactions.transaction import TransactionMetadata
from barnabas.wire.errors import ErrorCode, KafkaError


def unknown_mapping(transactional_id: str, producer_id: int) -> KafkaError:
    """The transactional id has another producer id, or none."""
    message = f"Transactional id '{transactional_id}' does not belong to producer id {producer_id}."
    return KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, message)


def producer_fenced(known: TransactionMetadata, producer_id: int, producer_epoch: int) -> KafkaError:
    """Another producer has taken over the transactional id."""
    message = (
        f"Producer {producer_id} with epoch {producer_epoch} does not have transactional id "
        f"'{known.transactional_id}' any longer: another has taken it over, or a timeout took it away."
    )
    return KafkaError(ErrorCode.PRODUCER_FENCED, message)


def concurrent(known: TransactionMetadata) -> KafkaError:
    """The previous transaction is not complete; retry."""
    message = f"The last transaction of '{known.transactional_id}' is still being completed: try again."
    return KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, message)


def invalid_state(known: TransactionMetadata, *, commit: bool) -> KafkaError:
    """The transaction is not in a state that can be ended this way."""
    what = "committed" if commit else "aborted"
    message = f"Transactional id '{known.transactional_id}' is {known.state}: nothing can be {what}."
    return KafkaError(ErrorCode.INVALID_TXN_STATE, message)
