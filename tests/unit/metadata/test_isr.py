from dataclasses import replace

import pytest

from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.isr import IsrChange, decide_alter_isr
from barnabas.metadata.topics import PartitionRegistration
from support.images import cluster, manually_assigned, replayed, with_state

FULL = cluster(3, manually_assigned("t", [1, 2, 3]))
TOPIC = FULL.topics["t"]


def with_isr(*isr: int) -> MetadataImage:
    return with_state(FULL, TOPIC, 0, replace(FULL.partition(TOPIC, 0), isr=isr))


def change(*isr: int, epoch: int = 0, partition_epoch: int = 0, **epochs: int) -> IsrChange:
    broker_epochs = {int(name.removeprefix("of_")): value for name, value in epochs.items()}
    return IsrChange(TOPIC.topic_id, 0, epoch, partition_epoch, isr, broker_epochs)


def after(image: MetadataImage, requested: IsrChange, broker_id: int = 1) -> PartitionRegistration:
    return replayed(image, decide_alter_isr(image, broker_id, [requested])).partition(TOPIC, 0)


def test_a_leader_removes_followers() -> None:
    state = after(FULL, change(1, 2))
    assert (state.isr, state.leader, state.leader_epoch, state.partition_epoch) == ((1, 2), 1, 0, 1)


def test_a_leader_adds_a_follower_in_its_broker_epoch() -> None:
    assert after(with_isr(1, 2), change(1, 2, 3, of_3=0)).isr == (1, 2, 3)


@pytest.mark.parametrize("epochs", [{}, {"of_3": 7}])
def test_a_follower_that_was_started_again_is_not_added(epochs: dict[str, int]) -> None:
    assert after(with_isr(1, 2), change(1, 2, 3, **epochs)).isr == (1, 2)


def test_a_fenced_follower_is_not_added_but_another_is() -> None:
    image = with_isr(1)
    fenced = replace(image.brokers["2"], fenced=True)
    image = replayed(image, Decision(None, (BROKERS.put("2", fenced),)))
    assert after(image, change(1, 2, 3, of_2=0, of_3=0)).isr == (1, 3)


@pytest.mark.parametrize(
    ("requested", "broker_id"),
    [
        (change(1, 2), 2),
        (change(1, 2, epoch=1), 1),
        (change(1, 2, partition_epoch=1), 1),
        (change(2, 3), 1),
        (change(1, 2, 9, of_9=0), 1),
        (replace(change(1, 2), topic_id=bytes(16)), 1),
        (replace(change(1, 2), index=1), 1),
    ],
)
def test_a_change_that_does_not_fit_the_present_state_is_ignored(
    requested: IsrChange, broker_id: int
) -> None:
    assert decide_alter_isr(FULL, broker_id, [requested]) == Decision(0)


def test_a_follower_in_sync_completes_a_reassignment() -> None:
    moving = replace(FULL.partition(TOPIC, 0), replicas=(3, 1, 2), isr=(1, 2), adding=(3,), removing=(2,))
    image = with_state(FULL, TOPIC, 0, moving)
    state = after(image, change(1, 2, 3, of_3=0))
    assert (state.replicas, state.isr, state.adding, state.removing) == ((3, 1), (1, 3), (), ())
