import pytest

from barnabas.metadata.elections import (
    changed_partitions,
    decide_elect,
    decide_elect_preferred,
    without_unneeded,
)
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import Election
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from support.images import cluster, manually_assigned, replayed, with_state

PREFERRED, UNCLEAN = Election.PREFERRED, Election.UNCLEAN


def image_with(state: PartitionRegistration, fenced: tuple[int, ...] = ()) -> MetadataImage:
    """Return three brokers; partition 0 of `t`, created on 1, 2, 3, in this state, and partition 1 as created."""
    image = cluster(3, manually_assigned("t", [1, 2, 3], [2, 1, 3]))
    image = with_state(image, image.topics["t"], 0, state)
    for broker_id in fenced:
        image = fenced_later(image, broker_id)
    return image


def fenced_later(image: MetadataImage, broker_id: int) -> MetadataImage:
    from barnabas.metadata.brokers import decide_register
    from support.images import broker

    return replayed(image, decide_register(image.brokers, broker(broker_id, fenced=True)))


def elect(image: MetadataImage, election: Election, *indexes: int) -> tuple[list[str], MetadataImage]:
    """Return the results for partitions of `t`, and the new states."""
    decision = decide_elect(image, election, [("t", indexes)])
    [outcome] = decision.response
    assert outcome.name == "t"
    assert [each.index for each in outcome.partitions] == list(indexes)
    results = [each.error.code.name if each.error else "NONE" for each in outcome.partitions]
    return results, replayed(image, decision)


def leader_of(image: MetadataImage, index: int = 0) -> tuple[int, int, tuple[int, ...]]:
    state = image.partition(image.topics["t"], index)
    return state.leader, state.leader_epoch, state.isr


def test_the_preferred_leader_is_elected() -> None:
    results, image = elect(image_with(PartitionRegistration(2, 7, (2, 1))), PREFERRED, 0)
    assert results == ["NONE"]
    assert leader_of(image) == (1, 8, (2, 1))


def test_a_partition_led_by_its_preferred_leader_needs_no_election() -> None:
    results, image = elect(image_with(PartitionRegistration(1, 7, (1,))), PREFERRED, 0, 1)
    assert results == ["ELECTION_NOT_NEEDED"] * 2
    assert leader_of(image) == (1, 7, (1,))


@pytest.mark.parametrize(("isr", "fenced"), [((2, 3), ()), ((1, 2, 3), (1,))])
def test_a_preferred_leader_that_is_offline_or_not_in_sync_is_not_available(
    isr: tuple[int, ...], fenced: tuple[int, ...]
) -> None:
    results, image = elect(image_with(PartitionRegistration(2, 7, isr), fenced), PREFERRED, 0)
    assert results == ["PREFERRED_LEADER_NOT_AVAILABLE"]
    assert leader_of(image) == (2, 7, isr)


def test_a_preferred_election_elects_another_in_sync_replica_if_there_is_no_leader() -> None:
    results, image = elect(image_with(PartitionRegistration(NO_LEADER, 7, (2, 3)), (1,)), PREFERRED, 0)
    assert results == ["NONE"]
    assert leader_of(image) == (2, 8, (2, 3))


def test_an_unclean_election_applies_only_to_partitions_without_a_leader() -> None:
    results, _ = elect(image_with(PartitionRegistration(2, 7, (2,))), UNCLEAN, 0, 1)
    assert results == ["ELECTION_NOT_NEEDED"] * 2


def test_an_unclean_election_elects_a_replica_that_is_not_in_sync() -> None:
    results, image = elect(image_with(PartitionRegistration(NO_LEADER, 7, (1,)), (1, 2)), UNCLEAN, 0)
    assert results == ["NONE"]
    assert leader_of(image) == (3, 8, (3,))


def test_an_unclean_election_without_online_replicas_has_no_eligible_leader() -> None:
    results, image = elect(image_with(PartitionRegistration(NO_LEADER, 7, (1,)), (1, 2, 3)), UNCLEAN, 0)
    assert results == ["ELIGIBLE_LEADERS_NOT_AVAILABLE"]
    assert leader_of(image) == (NO_LEADER, 7, (1,))


def test_each_partition_has_its_own_result_in_request_order() -> None:
    image = image_with(PartitionRegistration(2, 7, (2, 1)))
    requested = [("t", [5, 0, -1]), ("gone", [0]), ("t", [1, 0])]
    outcomes = decide_elect(image, PREFERRED, requested).response
    results = [
        (outcome.name, [each.error.code.name if each.error else "NONE" for each in outcome.partitions])
        for outcome in outcomes
    ]
    assert results == [
        ("t", ["UNKNOWN_TOPIC_OR_PARTITION", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"]),
        ("gone", ["UNKNOWN_TOPIC_OR_PARTITION"]),
        ("t", ["ELECTION_NOT_NEEDED", "NONE"]),
    ]


def test_when_all_partitions_are_elected_only_needed_elections_are_returned() -> None:
    image = cluster(2, manually_assigned("a", [1, 2], [2, 1]), manually_assigned("b", [1, 2]))
    image = with_state(image, image.topics["a"], 1, PartitionRegistration(1, 3, (1, 2)))
    image = with_state(image, image.topics["b"], 0, PartitionRegistration(2, 3, (2,)))
    decision = decide_elect(image, PREFERRED, changed_partitions(image))
    results = {
        outcome.name: [(each.index, each.error and each.error.code.name) for each in outcome.partitions]
        for outcome in map(without_unneeded, decision.response)
    }
    assert results == {"a": [(1, None)], "b": [(0, "PREFERRED_LEADER_NOT_AVAILABLE")]}
    after = replayed(image, decision)
    assert after.partition(after.topics["a"], 1).leader == 2


def test_an_error_names_the_possible_leaders() -> None:
    image = image_with(PartitionRegistration(2, 7, (2, 3)))
    [outcome] = decide_elect(image, PREFERRED, [("t", [0])]).response
    assert outcome.partitions[0].error is not None
    assert "t-0 cannot be led by its preferred leader 1" in outcome.partitions[0].error.message


def test_leadership_returns_to_preferred_leaders_in_sync_in_limited_commits() -> None:
    image = cluster(3, manually_assigned("t", *[[1, 2, 3]] * 4), fenced=[3])
    topic = image.topics["t"]
    for index, isr in enumerate([(1, 2), (2, 1), (2,), (1, 2)]):
        image = with_state(image, topic, index, PartitionRegistration(2, 1, isr, 1, (1, 2, 3)))
    first = decide_elect_preferred(image, limit=2)
    assert first.response == 2
    image = replayed(image, first)
    assert [image.partition(topic, index).leader for index in range(4)] == [1, 1, 2, 2]
    image = replayed(image, decide_elect_preferred(image))
    assert [image.partition(topic, index).leader for index in range(4)] == [1, 1, 2, 1]
    assert decide_elect_preferred(image).response == 0
    assert decide_elect_preferred(image).changes == ()


def test_a_fenced_preferred_leader_does_not_lead_again() -> None:
    image = cluster(3, manually_assigned("t", [3, 2]), fenced=[3])
    image = with_state(image, image.topics["t"], 0, PartitionRegistration(2, 1, (3, 2), 1, (3, 2)))
    assert decide_elect_preferred(image).response == 0
