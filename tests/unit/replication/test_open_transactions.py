"""Transactions that were open when their topic was deleted."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.metadata.topics import initial_state
from barnabas.metadata.undeletion import TrashedTopicRequest, decide_undelete
from barnabas.replication.partition import Partition
from support.batches import batch
from support.images import replayed
from support.transactions import begin_transaction, transactional
from support.trash import TrashBroker


def begin(broker: TrashBroker, producer_id: int) -> None:
    begin_transaction(broker.replicas.partition("t", 0), producer_id, b"x")


@pytest.mark.parametrize("new_name", ["t", "other"])
@pytest.mark.parametrize("restarts", ["never", "before the undeletion", "after it", "down meanwhile"])
def test_they_are_aborted_when_it_is_undeleted(
    trash_broker: TrashBroker, restarts: str, new_name: str
) -> None:
    begin(trash_broker, 9)
    begin(trash_broker, 10)
    trash_broker.delete("t")
    if restarts == "before the undeletion":
        trash_broker.restart()
    if restarts == "down meanwhile":
        undeletion = decide_undelete(trash_broker.image, TrashedTopicRequest("t"), new_name)
        trash_broker.image = replayed(trash_broker.image, undeletion)
        trash_broker.restart()
    else:
        trash_broker.undelete("t", new_name)
    if restarts == "after it":
        trash_broker.restart()
    partition = trash_broker.replicas.partition(new_name, 0)
    assert partition.log.last_stable_offset == partition.log.log_end_offset
    aborted: list[AbortedTransaction] = []
    partition.log.segments.active.transaction_index.collect(0, partition.log.log_end_offset, aborted)
    assert [transaction.producer_id for transaction in aborted] == [9, 10]


def test_those_that_ended_before_are_not_touched(trash_broker: TrashBroker) -> None:
    begin(trash_broker, 9)
    end_offset = trash_broker.replicas.partition("t", 0).log.log_end_offset
    trash_broker.delete("t")
    trash_broker.undelete("t")
    assert trash_broker.replicas.partition("t", 0).log.log_end_offset == end_offset + 1
    trash_broker.restart()
    begin(trash_broker, 10)
    trash_broker.restart()
    log = trash_broker.replicas.partition("t", 0).log
    assert log.producers.states.has_open_transaction(10, 0), "only what was in the trash is aborted"


def test_a_follower_aborts_no_later_transaction_after_it_was_truncated(
    make_partition: Callable[..., Partition],
) -> None:
    state = initial_state((2, 1))
    partition = make_partition((2, 1), state)
    for offset in range(3):
        partition.log.append_copied(batch(b"x", base_offset=offset))
    partition.log.left_trash_at = 3
    partition.log.truncate_to(1)
    partition.log.append_copied(transactional(9, 0, b"x", base_offset=1))
    partition.update_state(replace(state, leader=1, isr=(1,), leader_epoch=2, partition_epoch=2))
    assert partition.log.producers.states.has_open_transaction(9, 0)


def test_a_follower_leaves_them_to_the_leader_until_it_leads(
    make_partition: Callable[..., Partition],
) -> None:
    state = initial_state((2, 1))
    partition = make_partition((2, 1), state)
    partition.log.append_copied(transactional(9, 0, b"x"))
    partition.log.left_trash_at = 1
    follows = replace(state, leader_epoch=1, partition_epoch=1)
    partition.update_state(follows)
    assert partition.log.log_end_offset == 1
    partition.update_state(replace(state, leader=1, isr=(1,), leader_epoch=2, partition_epoch=2))
    assert partition.log.log_end_offset == partition.log.last_stable_offset == 2
    begin_transaction(partition, 10, b"y")
    partition.update_state(replace(state, leader=1, isr=(1,), leader_epoch=3, partition_epoch=3))
    assert partition.log.producers.states.has_open_transaction(10, 0)
