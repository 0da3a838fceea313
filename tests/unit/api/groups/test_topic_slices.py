from dataclasses import dataclass, field

from barnabas.api.groups.topic_slices import SLICE_PARTITIONS_MAX, slices


@dataclass
class Topic:
    name: str
    partitions: list[int] = field(default_factory=list)


def test_few_partitions_are_one_piece_and_so_is_nothing() -> None:
    topics = [Topic("a", [0, 1]), Topic("b", [0])]
    assert list(slices(topics)) == [topics]
    assert list(slices([])) == [[]]


def test_many_partitions_are_cut_in_their_order_and_none_is_lost() -> None:
    topics = [Topic("a", list(range(1_200))), Topic("b", [0]), Topic("empty"), Topic("c", list(range(400)))]
    found = list(slices(topics))
    assert [sum(len(topic.partitions) for topic in one_slice) for one_slice in found] == [
        *[200] * 6,
        1,
        200,
        200,
    ]
    assert [
        index for one_slice in found for topic in one_slice if topic.name == "a" for index in topic.partitions
    ] == [*range(1_200)]
    assert len(topics[0].partitions) == 1_200, "the request stays as it is"


def test_topics_without_partitions_count_as_one() -> None:
    found = list(slices([Topic(str(number)) for number in range(SLICE_PARTITIONS_MAX + 1)]))
    assert [len(one_slice) for one_slice in found] == [SLICE_PARTITIONS_MAX, 1]
