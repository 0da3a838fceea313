"""Verifies with the coordinator that a partition is in a transaction, before its first records there (KIP-890)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

from barnabas.base.ids import TopicPartition
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.replication.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError


class TransactionVerifier(Protocol):
    """Access to the transaction coordinators of the cluster."""

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Return the error for each partition that is not in the producer's open transaction.

        With `adds` the partitions are added first, as by AddPartitionsToTxn; otherwise TRANSACTION_ABORTABLE means that
        a partition is not in the transaction.
        """
        ...


class TransactionSupport(IntEnum):
    """What the client supports of KIP-890; each level includes those before it."""

    PLAIN = 0
    #: Supports the error TRANSACTION_ABORTABLE.
    ABORTABLE = 1
    #: Transactions of version 2: a write adds its partition, and each end increments the epoch.
    IMPLICIT = 2


class TransactionalWrite(NamedTuple):
    """A transactional write: the producer, and the first sequence by partition."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    sequences: Mapping[Partition, int]


@dataclass(slots=True)
class Verified:
    """Verification guards to append with, and errors of partitions that must not be appended to."""

    verifications: dict[Partition, VerificationGuard] = field(default_factory=dict)
    errors: dict[Partition, KafkaError] = field(default_factory=dict)


def start_verification(write: TransactionalWrite, support: TransactionSupport) -> Verified:
    """Start the verification in each partition; those with a guard must be verified by the coordinator."""
    started = Verified()
    for partition in write.sequences:
        start_in_partition(started, write, support, partition)
    return started


def start_in_partition(
    started: Verified, write: TransactionalWrite, support: TransactionSupport, partition: Partition
) -> None:
    """Add the guard or the error of one partition to `started`; neither if the transaction has records there."""
    try:
        partition.check_leader()
        verification = partition.log.producers.start_verification(
            write.producer_id,
            write.producer_epoch,
            write.sequences[partition],
            bumps_epochs=support is TransactionSupport.IMPLICIT,
        )
    except KafkaError as error:
        started.errors[partition] = error.without_traceback()
        return
    if verification is not None:
        started.verifications[partition] = verification


async def finish_verification(
    verifier: TransactionVerifier, write: TransactionalWrite, support: TransactionSupport, started: Verified
) -> None:
    """Verify all partitions with a guard at the coordinator, and add its errors to `started`."""
    partitions = {
        TopicPartition(partition.topic, partition.index): partition for partition in started.verifications
    }
    codes = await _verify(verifier, write, support, tuple(partitions))
    for name, partition in partitions.items():
        code = codes.get(name, ErrorCode.NONE)
        if code != ErrorCode.NONE:
            started.errors[partition] = _error_for_producer(name, code, support)


async def _verify(
    verifier: TransactionVerifier,
    write: TransactionalWrite,
    support: TransactionSupport,
    partitions: Sequence[TopicPartition],
) -> Mapping[TopicPartition, ErrorCode]:
    return await verifier.verify(
        write.transactional_id,
        write.producer_id,
        write.producer_epoch,
        partitions,
        adds=support is TransactionSupport.IMPLICIT,
    )


def _error_code_for_client(code: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """Translate the coordinator's error to one that the client supports."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupport.PLAIN:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _not_in_transaction(tp: TopicPartition, code: ErrorCode) -> KafkaError:
    message = (
        f"{tp} is not in the open transaction of this producer according to its coordinator: {code.name}."
    )
    return KafkaError(code, message)


#: Not all producers before KIP-890 retry on these errors, but they do on the error that replaces them.
_RETRIED = {
    ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}  # fmt: skip


def _error_for_producer(tp: TopicPartition, code: ErrorCode, support: TransactionSupport) -> KafkaError:
    """Return the error that a producer gets for the coordinator's error."""
    code = _error_code_for_client(code, support)
    is_retried = code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupport.IMPLICIT
    if code in _RETRIED or is_retried:
        message = f"The coordinator could not verify that {tp} is in the transaction: {code.name}."
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, message)
    return _not_in_transaction(tp, code)
