from collections.abc import Sequence

import pytest

from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.reassignments import Target, decide_reassign, reassignments
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from barnabas.wire.errors import KafkaError
from support.images import cluster, decide_isr, manually_assigned, replayed, with_state

#: Five brokers, of which 5 is fenced; partitions 0 and 1 on brokers 1, 2 and partition 2 on 3.
IMAGE = cluster(5, manually_assigned("t", [1, 2], [1, 2]), manually_assigned("single", [3]), fenced=[5])


def reassign(
    image: MetadataImage,
    replicas: Sequence[int] | None,
    *,
    topic: str = "t",
    index: int = 0,
    allows_unclean: bool = False,
    allows_factor_change: bool = True,
) -> tuple[KafkaError | None, MetadataImage]:
    """Return the result for one partition, and its new state."""
    decision = decide_reassign(
        image,
        [(topic, [Target(index, replicas)])],
        ElectionRules(allows_unclean=lambda _: allows_unclean),
        allows_factor_change=allows_factor_change,
    )
    [outcome] = decision.response
    assert (outcome.name, [each.index for each in outcome.partitions]) == (topic, [index])
    return outcome.partitions[0].error, replayed(image, decision)


def state_of(image: MetadataImage, topic: str = "t", index: int = 0) -> PartitionRegistration:
    return image.partition(image.topics[topic], index)


def moved(image: MetadataImage, *replicas: int) -> MetadataImage:
    error, after = reassign(image, replicas)
    assert error is None
    return after


def progressed(image: MetadataImage, *isr: int) -> MetadataImage:
    decision = decide_isr(image, "t", 0, isr)
    after = replayed(image, decision)
    assert state_of(after) == decision.response
    return after


def test_new_replicas_are_added_and_removed_ones_stay_for_now() -> None:
    state = state_of(moved(IMAGE, 3, 4))
    assert (state.replicas, state.adding, state.removing) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert (state.leader, state.leader_epoch, state.isr, state.partition_epoch) == (1, 0, (1, 2), 1)


def test_a_reassignment_completes_when_the_added_replicas_are_in_sync() -> None:
    image = progressed(moved(IMAGE, 3, 4), 1, 2, 3)
    assert state_of(image).is_reassigning
    image = progressed(image, 1, 2, 3, 4)
    assert state_of(image) == PartitionRegistration(3, 1, (3, 4), 3, replicas=(3, 4))
    assert IMAGE.topics["t"] == image.topics["t"]


def test_the_same_replicas_are_not_a_reassignment() -> None:
    error, after = reassign(IMAGE, [1, 2])
    assert (error, after) == (None, IMAGE)


def test_another_order_changes_the_preferred_leader_and_completes_immediately() -> None:
    state = state_of(moved(IMAGE, 2, 1))
    assert state == PartitionRegistration(1, 0, (1, 2), 1, replicas=(2, 1))


def test_a_subset_of_in_sync_replicas_completes_immediately() -> None:
    state = state_of(moved(IMAGE, 2))
    assert state == PartitionRegistration(2, 1, (2,), 1, replicas=(2,))


def test_a_fenced_broker_may_be_a_target() -> None:
    assert state_of(moved(IMAGE, 1, 5)).adding == (5,)


def test_a_new_target_replaces_the_previous_one() -> None:
    image = moved(moved(IMAGE, 1, 2, 3), 1, 2, 4)
    state = state_of(image)
    assert (state.replicas, state.adding, state.removing) == ((1, 2, 4, 3), (4,), (3,))


def test_a_replica_still_missing_under_a_new_target_counts_as_added() -> None:
    image = moved(moved(IMAGE, 1, 2, 3), 1, 2, 3, 4)
    assert state_of(image).adding == (3, 4)
    assert state_of(reassign(image, None)[1]).replicas == (1, 2)


def test_the_former_replicas_as_target_end_the_reassignment() -> None:
    state = state_of(moved(moved(IMAGE, 1, 2, 3), 1, 2))
    assert (state.replicas, state.is_reassigning) == ((1, 2), False)


def test_null_cancels_a_reassignment() -> None:
    error, image = reassign(progressed(moved(IMAGE, 3, 1), 1, 2, 4), None)
    assert error is None
    state = state_of(image)
    assert (state.replicas, state.adding, state.removing) == ((1, 2), (), ())
    assert set(state.isr) <= {1, 2, 4}


def test_a_cancellation_removes_an_added_leader() -> None:
    moving = PartitionRegistration(3, 7, (3, 1), 9, replicas=(3, 4, 1, 2), adding=(3, 4), removing=(1, 2))
    image = with_state(IMAGE, IMAGE.topics["t"], 0, moving)
    error, after = reassign(image, None)
    assert error is None
    assert state_of(after) == PartitionRegistration(1, 8, (1,), 10, replicas=(1, 2))


@pytest.mark.parametrize("allowed", [False, True])
def test_a_cancellation_to_replicas_out_of_sync_needs_an_unclean_election(allowed: bool) -> None:
    moving = PartitionRegistration(3, 7, (3,), 9, replicas=(3, 4, 1, 2), adding=(3, 4), removing=(1, 2))
    image = with_state(IMAGE, IMAGE.topics["t"], 0, moving)
    error, after = reassign(image, None, allows_unclean=allowed)
    if allowed:
        assert error is None
        assert state_of(after) == PartitionRegistration(1, 8, (1,), 10, replicas=(1, 2))
    else:
        assert error is not None
        assert error.code.name == "INVALID_REPLICA_ASSIGNMENT"
        assert "unclean.leader.election.enable" in error.message
        assert state_of(after) == moving


def test_a_cancellation_needs_remaining_replicas() -> None:
    moving = PartitionRegistration(3, 7, (3,), 9, replicas=(3, 4), adding=(3, 4))
    error, _ = reassign(with_state(IMAGE, IMAGE.topics["t"], 0, moving), None)
    assert error is not None
    assert error.code.name == "INVALID_REPLICA_ASSIGNMENT"


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        (None, "NO_REASSIGNMENT_IN_PROGRESS", "t-0"),
        ([], "INVALID_REPLICA_ASSIGNMENT", "empty"),
        ([1, 1], "INVALID_REPLICA_ASSIGNMENT", "twice"),
        ([1, 9], "INVALID_REPLICA_ASSIGNMENT", "broker 9"),
        ([-1], "INVALID_REPLICA_ASSIGNMENT", "broker -1"),
    ],
)
def test_an_invalid_target_is_rejected(target: list[int] | None, code: str, message: str) -> None:
    error, after = reassign(IMAGE, target)
    assert error is not None
    assert error.code.name == code
    assert message in error.message
    assert after is IMAGE


@pytest.mark.parametrize(("topic", "index"), [("t", 2), ("t", -1), ("gone", 0)])
@pytest.mark.parametrize("target", [None, [1], []])
def test_a_missing_partition_is_unknown(topic: str, index: int, target: list[int] | None) -> None:
    error, _ = reassign(IMAGE, target, topic=topic, index=index)
    assert error is not None
    assert error.code.name == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize(
    ("target", "is_allowed"), [([3, 4], True), ([1, 2], True), ([1], False), ([1, 2, 3], False)]
)
def test_the_replication_factor_is_kept_if_required(target: list[int], is_allowed: bool) -> None:
    error, _ = reassign(IMAGE, target, allows_factor_change=False)
    assert (error is None) == is_allowed
    if error is not None:
        assert error.code.name == "INVALID_REPLICATION_FACTOR"
        assert "factor of 2" in error.message


def test_the_replication_factor_of_a_moving_partition_is_its_targets() -> None:
    image = moved(IMAGE, 3, 4, 1)
    assert reassign(image, [1, 2, 3], allows_factor_change=False)[0] is None
    assert reassign(image, [1, 2], allows_factor_change=False)[0] is not None


def test_each_partition_has_its_own_result() -> None:
    requested = [("t", [Target(0, [3, 4]), Target(1, [9])]), ("gone", [Target(0, None)]), ("t", [])]
    decision = decide_reassign(IMAGE, requested)
    results = [
        (each.name, [part.error and part.error.code.name for part in each.partitions])
        for each in decision.response
    ]
    assert results == [
        ("t", [None, "INVALID_REPLICA_ASSIGNMENT"]),
        ("gone", ["UNKNOWN_TOPIC_OR_PARTITION"]),
        ("t", []),
    ]
    assert state_of(replayed(IMAGE, decision)).adding == (3, 4)


def test_progress_keeps_the_leader() -> None:
    image = progressed(IMAGE, 1)
    assert state_of(image) == PartitionRegistration(1, 0, (1,), 1, replicas=(1, 2))
    assert decide_isr(image, "t", 0, [1]).changes == ()


def test_a_partition_without_leader_gets_one_when_its_isr_changes() -> None:
    image = with_state(
        IMAGE, IMAGE.topics["t"], 0, PartitionRegistration(NO_LEADER, 3, (5,), replicas=(1, 5))
    )
    assert state_of(progressed(image, 5, 1)).leader == 1


def test_reassignments_are_listed_by_topic_and_partition() -> None:
    image = moved(IMAGE, 3, 4)
    everything = reassignments(image, None)
    assert {name: list(partitions) for name, partitions in everything.items()} == {"t": [0]}
    assert everything["t"][0].removing == (1, 2)
    assert reassignments(image, [("t", [0, 9, 0]), ("gone", [0])]) == everything
    assert reassignments(image, [("t", [1]), ("single", [0])]) == {}
    assert reassignments(IMAGE, None) == {}
