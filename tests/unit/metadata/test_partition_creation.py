import random

import pytest

from barnabas.metadata.brokers import decide_register
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_creation import Grown, MorePartitions, decide_create_partitions
from barnabas.metadata.topics import PartitionRegistration
from barnabas.wire.errors import ErrorCode
from support.images import broker, cluster, manually_assigned, new_topic, replayed, with_state

IMAGE = cluster(3, new_topic("t", 2, 1), manually_assigned("pairs", [1, 2]))


def grow(image: MetadataImage, *more: MorePartitions, validate_only: bool = False) -> Decision[list[Grown]]:
    return decide_create_partitions(image, more, random.Random(1), validate_only=validate_only)


def test_new_partitions_follow_the_old_ones_which_are_unchanged() -> None:
    decision = grow(IMAGE, MorePartitions("t", 5))
    assert decision.response == [Grown("t")]
    assert decision.reads.items() >= {"topics/t": IMAGE.topics.revision("t")}.items()
    before, after = IMAGE.topics["t"], replayed(IMAGE, decision).topics["t"]
    assert after.assignments[:2] == before.assignments
    assert (after.partition_count, after.topic_id) == (5, before.topic_id)


def test_new_partitions_have_the_first_partitions_replication_factor() -> None:
    after = replayed(IMAGE, grow(IMAGE, MorePartitions("pairs", 3))).topics["pairs"]
    assert [len(replicas) for replicas in after.assignments] == [2, 2, 2]


def test_new_partitions_have_the_first_partitions_current_replication_factor() -> None:
    state = PartitionRegistration(1, 3, (1,), replicas=(1,))
    image = with_state(IMAGE, IMAGE.topics["pairs"], 0, state)
    after = replayed(image, grow(image, MorePartitions("pairs", 2))).topics["pairs"]
    assert [len(replicas) for replicas in after.assignments] == [2, 1]


def test_manual_assignments_are_used_unchanged() -> None:
    after = replayed(IMAGE, grow(IMAGE, MorePartitions("pairs", 3, [[3, 1], [2, 3]]))).topics["pairs"]
    assert after.assignments == ((1, 2), (3, 1), (2, 3))


def test_the_states_of_old_partitions_are_unchanged() -> None:
    state = PartitionRegistration(-1, 3, (), replicas=(3,))
    image = with_state(IMAGE, IMAGE.topics["t"], 1, state)
    after = replayed(image, grow(image, MorePartitions("t", 3)))
    assert after.partition(after.topics["t"], 1) == state
    assert after.partition(after.topics["t"], 2).leader_epoch == 0


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (MorePartitions("gone", 3), "UNKNOWN_TOPIC_OR_PARTITION", "'gone'"),
        (MorePartitions("t", 2), "INVALID_PARTITIONS", "already has 2 partition(s)"),
        (
            MorePartitions("t", 1),
            "INVALID_PARTITIONS",
            "currently has 2 partition(s); 1 would not be an increase",
        ),
        (MorePartitions("t", 0), "INVALID_PARTITIONS", "0 would not be an increase"),
        (MorePartitions("t", -1), "INVALID_PARTITIONS", "-1 would not be an increase"),
        (MorePartitions("t", 10_003), "INVALID_PARTITIONS", "10001 partitions are too many: at most 10000"),
        (MorePartitions("t", 4, [[1]]), "INVALID_REPLICA_ASSIGNMENT", "2 additional partition(s), but 1"),
        (MorePartitions("t", 3, []), "INVALID_REPLICA_ASSIGNMENT", "but 0 assignment(s) were given"),
        (MorePartitions("t", 3, [[]]), "INVALID_REPLICA_ASSIGNMENT", "an empty replica list"),
        (MorePartitions("t", 3, [[9]]), "INVALID_REPLICA_ASSIGNMENT", "broker 9, which is not registered"),
        (MorePartitions("t", 3, [[1, 2]]), "INVALID_REPLICA_ASSIGNMENT", "[1, 2] has 2 replicas"),
        (MorePartitions("pairs", 2, [[1, 1]]), "INVALID_REPLICA_ASSIGNMENT", "[1, 1] names a broker twice"),
    ],
)
def test_an_invalid_increase_is_rejected_individually(more: MorePartitions, code: str, message: str) -> None:
    decision = grow(IMAGE, more, MorePartitions("pairs" if more.name != "pairs" else "t", 4))
    refused, grown = decision.response
    assert refused.name == more.name
    assert refused.error is not None
    assert refused.error.code.name == code
    assert message in refused.error.message
    assert grown.error is None
    assert len(decision.changes) == 1


def test_a_duplicate_topic_is_rejected_once() -> None:
    decision = grow(IMAGE, MorePartitions("t", 3), MorePartitions("pairs", 2), MorePartitions("t", 4))
    assert [outcome.name for outcome in decision.response] == ["t", "pairs"]
    error = decision.response[0].error
    assert error is not None
    assert error.code is ErrorCode.INVALID_REQUEST
    assert {key for key in decision.reads if key.startswith("topics/")} == {"topics/pairs"}


def test_a_fenced_broker_follows_new_partitions_if_there_are_too_few_others() -> None:
    image = cluster(2, manually_assigned("pairs", [1, 2]))
    image = replayed(image, decide_register(image.brokers, broker(2, fenced=True)))
    after = replayed(image, grow(image, MorePartitions("pairs", 2)))
    state = after.partition(after.topics["pairs"], 1)
    assert (state.leader, state.isr, state.replicas) == (1, (1,), (1, 2))


def test_new_partitions_without_a_broker_that_is_up_are_refused() -> None:
    image = cluster(2, manually_assigned("pairs", [1, 2]))
    for broker_id in (1, 2):
        image = replayed(image, decide_register(image.brokers, broker(broker_id, fenced=True)))
    for assignments in (None, [[2, 1]]):
        [outcome] = grow(image, MorePartitions("pairs", 2, assignments)).response
        assert outcome.error is not None
        assert "fenced" in outcome.error.message


def test_validate_only_returns_the_same_and_changes_nothing() -> None:
    asked = (MorePartitions("t", 3), MorePartitions("pairs", 1))
    decision = grow(IMAGE, *asked, validate_only=True)
    assert (decision.changes, decision.reads) == ((), {})
    assert [outcome.error and outcome.error.code for outcome in decision.response] == [
        None,
        ErrorCode.INVALID_PARTITIONS,
    ]


def test_a_cordoned_broker_gets_new_partitions_only_by_manual_assignment() -> None:
    image = replayed(IMAGE, decide_register(IMAGE.brokers, broker(2, cordoned=True)))
    after = replayed(image, grow(image, MorePartitions("t", 22))).topics["t"]
    assert {replicas[0] for replicas in after.assignments[2:]} == {1, 3}
    after = replayed(image, grow(image, MorePartitions("t", 3, [[2]]))).topics["t"]
    assert after.assignments[2] == (2,)
