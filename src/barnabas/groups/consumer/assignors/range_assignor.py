"""The assignor `range`: each subscriber gets a contiguous range of each topic's partitions, in the same order for every
topic.

So members with the same subscription get the same indexes of topics with equal partition counts, which joins of streams
rely on. Static members come first, by instance id: their ranges stay when they return under another member id.
"""

from itertools import pairwise

from barnabas.groups.consumer.assignors.group_spec import GroupSpec, Partitions


def assign_ranges(group: GroupSpec) -> dict[str, Partitions]:
    """Assign each member its range of every topic to which it subscribes."""
    order = _in_order(group)
    subscribers: dict[bytes, list[str]] = {}
    for member_id in order:
        for topic_id in group.members[member_id].topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    target: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in order}
    for topic_id, member_ids in subscribers.items():
        for member_id, partitions in zip(member_ids, _ranges(group, topic_id, len(member_ids)), strict=True):
            if partitions:
                target[member_id][topic_id] = frozenset(partitions)
    return dict(target)


def _in_order(group: GroupSpec) -> list[str]:
    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = group.members[member_id].instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(group.members, key=rank)


def _ranges(group: GroupSpec, topic_id: bytes, members_count: int) -> list[range]:
    """Split a topic's partitions into as many ranges as there are members; the first ones have one partition more."""
    quota, extra = divmod(group.partition_counts[topic_id], members_count)
    starts = [quota * at + min(at, extra) for at in range(members_count + 1)]
    return [range(*between) for between in pairwise(starts)]
