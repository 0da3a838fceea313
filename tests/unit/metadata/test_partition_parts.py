from barnabas.metadata.partition_change_builder import PartitionOutcome, TopicOutcome
from barnabas.metadata.partition_parts import TopicPart, divided, joined

REQUESTED = [("t", [0, 1, 2, 3, 4]), ("empty", list[int]()), ("u", [7]), ("t", [9])]


def test_the_partitions_of_a_topic_are_divided() -> None:
    assert divided(REQUESTED, 2) == [
        TopicPart("t", [0, 1]),
        TopicPart("t", [2, 3], continues_last=True),
        TopicPart("t", [4], continues_last=True),
        TopicPart("empty", []),
        TopicPart("u", [7]),
        TopicPart("t", [9]),
    ]


def test_the_outcomes_are_those_of_the_request() -> None:
    parts = divided(REQUESTED, 2)
    outcomes = [
        TopicOutcome(part.name, [PartitionOutcome(index) for index in part.partitions]) for part in parts
    ]
    assert [
        (outcome.name, [partition.index for partition in outcome.partitions])
        for outcome in joined(parts, outcomes)
    ] == REQUESTED
