"""Verification of records that a coordinator writes; for producers see
tests/unit/api/data/test_transactional_produce.py.
"""

from collections.abc import Callable, Mapping, Sequence

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.partition import Partition
from barnabas.replication.transaction_verification import (
    TransactionalWrite,
    TransactionSupport,
    verify_partition,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from support.loop import on_loop
from support.transactions import transactional

Make = Callable[..., Partition]
NO_SEQUENCE = -1


class Coordinator:
    def __init__(self, code: ErrorCode) -> None:
        self.code = code
        self.calls: list[bool] = []

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        self.calls.append(adds)
        return dict.fromkeys(partitions, self.code)


def write(partition: Partition, epoch: int = 0) -> TransactionalWrite:
    return TransactionalWrite("payments", 9, epoch, {partition: NO_SEQUENCE})


@on_loop
async def test_a_coordinators_first_records_are_appended_with_their_verification(
    make_partition: Make,
) -> None:
    partition, coordinator = make_partition(), Coordinator(ErrorCode.NONE)
    records = transactional(9, NO_SEQUENCE, b"offset")
    with pytest.raises(KafkaError) as error:
        partition.append_as_coordinator(records)
    assert error.value.code is ErrorCode.INVALID_TXN_STATE
    verification = await verify_partition(coordinator, write(partition), TransactionSupport.IMPLICIT)
    assert partition.append_as_coordinator(records, verification).first_offset == 0
    assert await verify_partition(coordinator, write(partition), TransactionSupport.PLAIN) is None
    assert coordinator.calls == [True]


@pytest.mark.parametrize(
    ("coordinator_error", "support", "expected"),
    [
        (ErrorCode.PRODUCER_FENCED, TransactionSupport.IMPLICIT, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionSupport.PLAIN, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, TransactionSupport.ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, TransactionSupport.PLAIN, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_an_error_of_the_coordinator_is_raised(
    make_partition: Make, coordinator_error: ErrorCode, support: TransactionSupport, expected: ErrorCode
) -> None:
    @on_loop
    async def verify() -> None:
        with pytest.raises(KafkaError) as error:
            await verify_partition(Coordinator(coordinator_error), write(make_partition()), support)
        assert error.value.code is expected

    verify()


@on_loop
async def test_an_error_of_the_partition_is_raised_without_verification(make_partition: Make) -> None:
    coordinator = Coordinator(ErrorCode.NONE)
    elsewhere = make_partition((1, 2), PartitionRegistration(2, 0, (1, 2)))
    with pytest.raises(KafkaError) as error:
        await verify_partition(coordinator, write(elsewhere), TransactionSupport.PLAIN)
    assert error.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not coordinator.calls


@on_loop
async def test_without_coordinators_nothing_is_verified(make_partition: Make) -> None:
    partition = make_partition()
    verification = await verify_partition(None, write(partition), TransactionSupport.PLAIN)
    assert verification is not None
    assert partition.append_as_coordinator(transactional(9, -1, b"x"), verification).first_offset == 0
