"""Counts of elections and of changes of in-sync replicas."""

from dataclasses import replace

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.metadata.topics import PartitionRegistration
from barnabas.replication.leader_statistics import LeaderStatistics

TP = TopicPartition("t", 0)
BEFORE = PartitionRegistration(
    leader=2, leader_epoch=4, isr=(2, 3), partition_epoch=7, replicas=(1, 2, 3), elr=()
)


def elected(leader: int, before: PartitionRegistration, isr: tuple[int, ...]) -> PartitionRegistration:
    epochs = {"leader_epoch": before.leader_epoch + 1, "partition_epoch": before.partition_epoch + 1}
    return replace(before, leader=leader, isr=isr, **epochs)


def counts(before: PartitionRegistration, after: PartitionRegistration, broker_id: int = 1) -> dict[str, int]:
    """Return the counts of a broker that are not 0."""
    statistics = LeaderStatistics(broker_id)
    statistics.count(TP, before, after)
    return {name: count for name, count in statistics.statistics().items() if count}


def test_an_election_of_a_replica_that_was_in_sync_is_clean() -> None:
    assert counts(BEFORE, elected(3, BEFORE, (3,)), broker_id=3) == {"elections_count": 1}


def test_an_election_of_an_eligible_replica_is_clean() -> None:
    before = replace(BEFORE, leader=-1, isr=(), elr=(1,))
    assert counts(before, elected(1, before, (1,))) == {"elections_count": 1}


def test_an_election_of_another_replica_is_unclean_and_logged(capsys: pytest.CaptureFixture[str]) -> None:
    before = replace(BEFORE, leader=-1, isr=(2,))
    expected = {"elections_count": 1, "unclean_elections_count": 1}
    assert counts(before, elected(1, before, (1,))) == expected
    assert "acknowledged records may be lost" in capsys.readouterr().err


def test_an_election_that_completes_a_reassignment_is_clean() -> None:
    before = replace(BEFORE, replicas=(1, 2, 3), adding=(1,), removing=(2, 3))
    after = replace(elected(1, before, (1,)), replicas=(1,), adding=(), removing=())
    assert counts(before, after) == {"elections_count": 1}


def test_an_unclean_election_of_a_replica_that_is_being_added_is_noticed() -> None:
    before = replace(BEFORE, leader=-1, isr=(2,), adding=(1,))
    assert counts(before, elected(1, before, (1,)))["unclean_elections_count"] == 1


def test_an_election_after_changes_that_were_not_seen_is_not_taken_for_unclean() -> None:
    after = replace(elected(1, BEFORE, (1,)), partition_epoch=BEFORE.partition_epoch + 2)
    assert counts(BEFORE, after) == {"elections_count": 1}


@pytest.mark.parametrize(
    ("isr", "expected"),
    [
        ((2,), {"isr_shrinks_count": 1}),
        ((1, 2, 3), {"isr_expands_count": 1}),
        ((1, 2), {"isr_shrinks_count": 1, "isr_expands_count": 1}),
        ((2, 3), {}),
    ],
)
def test_the_leader_counts_changes_of_in_sync_replicas(
    isr: tuple[int, ...], expected: dict[str, int]
) -> None:
    after = replace(BEFORE, isr=isr, partition_epoch=BEFORE.partition_epoch + 1)
    assert counts(BEFORE, after, broker_id=2) == expected
    assert counts(BEFORE, after, broker_id=3) == {}
