"""Invariants of the server-side assignors, for groups of any shape."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.consumer.assignors.builtin import ASSIGNORS
from barnabas.groups.consumer.assignors.group_spec import GroupSpec, MemberSpec, Partitions, partitions_count
from barnabas.groups.consumer.assignors.range_assignor import assign_ranges
from barnabas.groups.consumer.assignors.uniform_assignor import assign_uniformly

A, B, C = (letter * 16 for letter in (b"a", b"b", b"c"))


def topic_sets(topic_ids: list[bytes]) -> st.SearchStrategy[frozenset[bytes]]:
    return st.frozensets(st.sampled_from(topic_ids)) if topic_ids else st.just(frozenset())


@st.composite
def groups(draw: st.DrawFn, *, homogeneous: bool = False) -> GroupSpec:
    counts = draw(st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 9)))
    ids = draw(st.lists(st.sampled_from("mnopqrs"), unique=True, min_size=1))
    shared = draw(topic_sets(list(counts)))
    members = {}
    for member_id in ids:
        topics = shared if homogeneous else draw(topic_sets(list(counts)))
        instance_id = draw(st.sampled_from([None, f"i-{member_id}"]))
        members[member_id] = MemberSpec(topics, instance_id=instance_id)
    return GroupSpec(members, counts)


def members_of(*member_ids: str, topics: tuple[bytes, ...] = (A,)) -> dict[str, MemberSpec]:
    return {member_id: MemberSpec(frozenset(topics)) for member_id in member_ids}


def having(group: GroupSpec, target: dict[str, Partitions]) -> GroupSpec:
    """Return the group after it has got a target assignment."""
    members = {
        member_id: replace(member, target=target.get(member_id, {}))
        for member_id, member in group.members.items()
    }
    return GroupSpec(members, group.partition_counts)


def placed(target: dict[str, Partitions]) -> dict[tuple[bytes, int], str]:
    """Return the owner of each partition; fail if there are two."""
    owners: dict[tuple[bytes, int], str] = {}
    for member_id, partitions in target.items():
        for topic_id, indexes in partitions.items():
            assert indexes, "topics of which a member has nothing are left out"
            for index in indexes:
                assert owners.setdefault((topic_id, index), member_id) == member_id
    return owners


def check_complete(group: GroupSpec, target: dict[str, Partitions]) -> None:
    subscribed = frozenset[bytes]().union(*(member.topic_ids for member in group.members.values()))
    owners = placed(target)
    assert target.keys() == group.members.keys()
    assert owners.keys() == {
        (topic_id, index) for topic_id in subscribed for index in range(group.partition_counts[topic_id])
    }
    for (topic_id, _), member_id in owners.items():
        assert topic_id in group.members[member_id].topic_ids


def check_balanced(group: GroupSpec, target: dict[str, Partitions]) -> None:
    for rich in group.members:
        for poor, member in group.members.items():
            movable = target[rich].keys() & member.topic_ids
            if movable:
                assert partitions_count(target[rich]) - partitions_count(target[poor]) <= 1


def moves_count(before: dict[str, Partitions], after: dict[str, Partitions]) -> int:
    owners = placed(before)
    return sum(owners.get(partition, owner) != owner for partition, owner in placed(after).items())


@pytest.mark.parametrize("name", ASSIGNORS)
@given(groups())
def test_every_partition_has_exactly_one_subscriber(name: str, group: GroupSpec) -> None:
    check_complete(group, ASSIGNORS[name](group))


@given(groups(), groups())
def test_a_uniform_assignment_is_complete_and_balanced_after_any_other(
    group: GroupSpec, earlier: GroupSpec
) -> None:
    again = having(group, assign_uniformly(earlier))
    target = assign_uniformly(again)
    check_complete(again, target)
    check_balanced(again, target)


@given(groups())
def test_a_uniform_assignment_is_stable(group: GroupSpec) -> None:
    target = assign_uniformly(group)
    assert assign_uniformly(having(group, target)) == target


@given(groups(homogeneous=True), st.sampled_from("xyz"))
def test_a_new_member_gets_its_share_and_nothing_else_moves(group: GroupSpec, joining: str) -> None:
    before = assign_uniformly(group)
    topics = next(iter(group.members.values())).topic_ids
    members = dict(having(group, before).members) | {joining: MemberSpec(topics)}
    after = assign_uniformly(GroupSpec(members, group.partition_counts))
    assert moves_count(before, after) == partitions_count(after[joining])


@given(groups(homogeneous=True))
def test_only_the_partitions_of_a_leaving_member_move(group: GroupSpec) -> None:
    before = assign_uniformly(group)
    leaving = min(group.members)
    members = {k: m for k, m in having(group, before).members.items() if k != leaving}
    after = assign_uniformly(GroupSpec(members, group.partition_counts))
    assert moves_count(before, after) <= partitions_count(before[leaving])


def test_a_member_that_already_has_one_more_partition_keeps_it() -> None:
    group = GroupSpec(members_of("m", "n"), {A: 3})
    before: dict[str, Partitions] = {"m": {A: frozenset({0})}, "n": {A: frozenset({1, 2})}}
    assert assign_uniformly(having(group, before)) == before


def test_ranges_are_contiguous_and_the_first_members_get_the_rest() -> None:
    target = assign_ranges(GroupSpec(members_of("n", "m", "o", topics=(A, B)), {A: 7, B: 3}))
    assert target == {
        "m": {A: frozenset({0, 1, 2}), B: frozenset({0})},
        "n": {A: frozenset({3, 4}), B: frozenset({1})},
        "o": {A: frozenset({5, 6}), B: frozenset({2})},
    }


def test_topics_of_equal_size_have_equal_ranges() -> None:
    target = assign_ranges(GroupSpec(members_of("m", "n", topics=(A, B)), {A: 5, B: 5}))
    assert all(partitions[A] == partitions[B] for partitions in target.values())


def test_static_members_get_their_ranges_by_instance_id_before_others() -> None:
    members = {
        "a": MemberSpec(frozenset({A})),
        "y": MemberSpec(frozenset({A}), instance_id="2"),
        "z": MemberSpec(frozenset({A}), instance_id="1"),
    }
    target = assign_ranges(GroupSpec(members, {A: 3}))
    assert {member_id: set(partitions[A]) for member_id, partitions in target.items()} == {
        "z": {0},
        "y": {1},
        "a": {2},
    }


def test_there_may_be_more_members_than_partitions() -> None:
    group = GroupSpec(members_of("m", "n", "o"), {A: 2})
    for assign in ASSIGNORS.values():
        assert sorted(map(partitions_count, assign(group).values())) == [0, 1, 1]


def test_a_group_without_members_has_no_target() -> None:
    for assign in ASSIGNORS.values():
        assert assign(GroupSpec({}, {})) == {}
