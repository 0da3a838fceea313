"""Uniform assignment for members with the same subscription."""

from collections.abc import Iterator

from barnabas.groups.consumer.assignors.group_spec import GroupSpec, Partitions, partitions_count


def assign_homogeneous(group: GroupSpec) -> dict[str, Partitions]:
    """Assign each member its quota: equal parts, and one partition more to as many members as there are partitions
    left.

    A member keeps its partitions up to its quota, so that as few as possible move.
    """
    topic_ids = sorted(next(iter(group.members.values())).topic_ids)
    quotas = _quotas(group, topic_ids)
    target: dict[str, Partitions] = {}
    for member_id, member in group.members.items():
        target[member_id] = _retained(group, member.target, topic_ids, quotas[member_id])
    free = _unassigned(group, target, topic_ids)
    for member_id, partitions in target.items():
        missing_count = quotas[member_id] - partitions_count(partitions)
        if missing_count > 0:
            target[member_id] = _with_more(partitions, free, missing_count)
    assert next(free, None) is None, "the quotas add up to all partitions"
    return target


def _quotas(group: GroupSpec, topic_ids: list[bytes]) -> dict[str, int]:
    """Return how many partitions each member gets; one more goes first to members that have so many already."""
    total = sum(group.partition_counts[topic_id] for topic_id in topic_ids)
    quota, extra = divmod(total, len(group.members))
    subscribed = frozenset(topic_ids)
    held = {
        member_id: sum(len(of) for topic_id, of in member.target.items() if topic_id in subscribed)
        for member_id, member in group.members.items()
    }
    favoured = sorted(group.members, key=lambda member_id: held[member_id] <= quota)[:extra]
    return dict.fromkeys(group.members, quota) | dict.fromkeys(favoured, quota + 1)


def _retained(group: GroupSpec, target: Partitions, topic_ids: list[bytes], quota: int) -> Partitions:
    """Return what a member keeps of its previous target: at most its quota, of existing partitions."""
    retained: dict[bytes, frozenset[int]] = {}
    for topic_id in topic_ids:
        count = group.partition_counts[topic_id]
        held = sorted(index for index in target.get(topic_id, ()) if index < count)[:quota]
        if held:
            retained[topic_id] = frozenset(held)
            quota -= len(held)
    return retained


def _unassigned(
    group: GroupSpec, target: dict[str, Partitions], topic_ids: list[bytes]
) -> Iterator[tuple[bytes, int]]:
    assigned: dict[bytes, set[int]] = {topic_id: set() for topic_id in topic_ids}
    for partitions in target.values():
        for topic_id, indexes in partitions.items():
            assigned[topic_id] |= indexes
    free = [
        (topic_id, index)
        for topic_id in topic_ids
        for index in range(group.partition_counts[topic_id])
        if index not in assigned[topic_id]
    ]
    return iter(free)


def _with_more(retained: Partitions, free: Iterator[tuple[bytes, int]], count: int) -> Partitions:
    more: dict[bytes, set[int]] = {topic_id: set(indexes) for topic_id, indexes in retained.items()}
    for _, (topic_id, index) in zip(range(count), free, strict=False):
        more.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in more.items()}
