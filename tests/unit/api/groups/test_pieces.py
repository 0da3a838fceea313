from dataclasses import dataclass, field

from barnabas.api.groups.pieces import PIECE_PARTITIONS_MAX, pieces


@dataclass
class Topic:
    name: str
    partitions: list[int] = field(default_factory=list)


def test_few_partitions_are_one_slice_and_so_are_none() -> None:
    topics = [Topic("a", [0, 1]), Topic("b", [0])]
    assert list(pieces(topics)) == [topics]
    assert list(pieces([])) == [[]]


def test_many_partitions_are_split_in_order_without_loss() -> None:
    topics = [Topic("a", list(range(1_200))), Topic("b", [0]), Topic("empty"), Topic("c", list(range(400)))]
    found = list(pieces(topics))
    assert [sum(len(topic.partitions) for topic in piece) for piece in found] == [*[200] * 6, 1, 200, 200]
    assert [
        index for piece in found for topic in piece if topic.name == "a" for index in topic.partitions
    ] == [*range(1_200)]
    assert len(topics[0].partitions) == 1_200, "the request stays as it is"


def test_topics_without_partitions_count_as_one() -> None:
    found = list(pieces([Topic(str(number)) for number in range(PIECE_PARTITIONS_MAX + 1)]))
    assert [len(piece) for piece in found] == [PIECE_PARTITIONS_MAX, 1]
