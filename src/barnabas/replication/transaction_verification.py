"""Before a transaction's first records in a partition: does its coordinator know that they belong to it (KIP-890)?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

from barnabas.base.ids import TopicPartition
from barnabas.log.producers.producer_state_manager import VerificationGuard
from barnabas.replication.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError


class TransactionVerifier(Protocol):
    """The transaction coordinators of the cluster, as partitions know them."""

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """What is against each partition's being in the producer's open transaction: those without error are in it.

        With `adds` they are added first, as by AddPartitionsToTxn; without, TRANSACTION_ABORTABLE tells that one is
        missing.
        """
        ...


class TransactionSupport(IntEnum):
    """What the client that writes knows of KIP-890; each includes those before."""

    PLAIN = 0
    #: The error TRANSACTION_ABORTABLE.
    ABORTABLE = 1
    #: Transactions of version 2: whoever writes to a partition adds it, and each end bumps the epoch.
    IMPLICIT = 2


class TransactionalWrite(NamedTuple):
    """Who writes, to where and with which first sequence."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    sequences: Mapping[Partition, int]


@dataclass(slots=True)
class Verified:
    """What to append with, and what must not be appended."""

    verifications: dict[Partition, VerificationGuard] = field(default_factory=dict)
    errors: dict[Partition, KafkaError] = field(default_factory=dict)


def start_verification(write: TransactionalWrite, support: TransactionSupport) -> Verified:
    """What each partition says before anybody is asked; those with a verification need that."""
    started = Verified()
    for partition, sequence in write.sequences.items():
        try:
            partition.check_leader()
            verification = partition.log.start_verification(
                write.producer_id,
                write.producer_epoch,
                sequence,
                bumps_epochs=support is TransactionSupport.IMPLICIT,
            )
        except KafkaError as error:
            started.errors[partition] = error.kept()
            continue
        if verification is not None:
            started.verifications[partition] = verification
    return started


async def finish_verification(
    verifier: TransactionVerifier, write: TransactionalWrite, support: TransactionSupport, started: Verified
) -> None:
    """Ask the coordinator on all partitions with a verification, and note in `started` what it has against them."""
    partitions = {TopicPartition(each.topic, each.index): each for each in started.verifications}
    answers = await _ask(verifier, write, support, tuple(partitions))
    for name, partition in partitions.items():
        code = answers.get(name, ErrorCode.NONE)
        if code != ErrorCode.NONE:
            started.errors[partition] = _error_for_producer(name, code, support)


async def verify_partition(
    verifier: TransactionVerifier | None,
    write: TransactionalWrite,
    support: TransactionSupport,
) -> VerificationGuard | None:
    """What to append a coordinator's records of a transaction with; `write` is to one partition.

    None when the transaction has records there already. Without a verifier nobody is asked.

    :raises KafkaError: NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, or what the transaction's coordinator says.
    """
    [partition] = write.sequences
    started = start_verification(write, support)
    if verifier is not None and started.verifications:
        name = TopicPartition(partition.topic, partition.index)
        code = _known((await _ask(verifier, write, support, [name])).get(name, ErrorCode.NONE), support)
        if code != ErrorCode.NONE:
            raise _refusal(name, code)
    if partition in started.errors:
        raise started.errors[partition]
    return started.verifications.get(partition)


async def _ask(
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


def _known(code: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """The coordinator's error, in terms that the client knows."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupport.PLAIN:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _refusal(name: TopicPartition, code: ErrorCode) -> KafkaError:
    message = f"{name} is not in the open transaction of this producer, says its coordinator: {code.name}."
    return KafkaError(code, message)


#: Producers before KIP-890 do not all try again after these; the error that takes their place they do.
_RETRIED = {
    ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}  # fmt: skip


def _error_for_producer(name: TopicPartition, code: ErrorCode, support: TransactionSupport) -> KafkaError:
    """The coordinator's error as producers are told it."""
    code = _known(code, support)
    is_retried = code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupport.IMPLICIT
    if code in _RETRIED or is_retried:
        message = f"The coordinator could not say whether {name} is in the transaction: {code.name}."
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, message)
    return _refusal(name, code)
