from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.core.metadata import PartitionInfo, TopicInfo
from barnabas.console.forms import Form
from barnabas.console.pages.reassignments import brokers_of, spread


def topic(*replicas: tuple[int, ...]) -> TopicInfo:
    infos = [PartitionInfo(index, each[0], 0, each, each, ()) for index, each in enumerate(replicas)]
    return TopicInfo("t", b"", False, tuple(infos))


def test_a_balanced_assignment_is_kept() -> None:
    lying = topic((1, 2), (2, 3), (3, 1))
    assert list(spread(lying, [1, 2, 3], None).values()) == [[1, 2], [2, 3], [3, 1]]


def test_a_removed_broker_has_no_replicas_afterwards() -> None:
    assert list(spread(topic((1, 2), (2, 3)), [2, 3], None).values()) == [[2, 3], [3, 2]]


def test_the_replication_factor_is_the_requested_one_up_to_the_number_of_brokers() -> None:
    assert list(spread(topic((1,)), [1, 2, 3], 3).values()) == [[1, 2, 3]]
    assert list(spread(topic((1, 2, 3)), [1], None).values()) == [[1]]


@given(st.integers(1, 30), st.integers(1, 7), st.integers(1, 3))
def test_leaders_are_balanced_and_replicas_distinct(partitions: int, brokers: int, factor: int) -> None:
    targets = spread(topic(*[(1,)] * partitions), list(range(1, brokers + 1)), factor).values()
    leaders = Counter(target[0] for target in targets)
    assert max(leaders.values()) - min(leaders[node] for node in range(1, brokers + 1)) <= 1
    assert all(len(set(target)) == len(target) == min(factor, brokers) for target in targets)


def test_brokers_are_named_by_id_and_default_to_all() -> None:
    def named(text: str) -> tuple[list[int], dict[str, str]]:
        form = Form({"brokers": [text]})
        return brokers_of(form, [1, 2, 3]), form.errors

    assert named("") == ([1, 2, 3], {})
    assert named("3, 1,3") == ([3, 1], {})
    assert named("9")[1] == {"brokers": "'9' is not one of 1, 2, 3."}
