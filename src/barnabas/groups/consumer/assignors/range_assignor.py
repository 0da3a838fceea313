"""The assignor `range`: each topic's partitions in one run per subscriber, in the same order for every topic.

Members that subscribe to the same topics so get the same indexes of topics with as many partitions, which joins of
streams rely on. Static members come first, by instance id: their ranges stay when they come back under another id.
"""

from itertools import pairwise

from barnabas.groups.consumer.assignors.group_spec import GroupSpec, Partitions


def assign_ranges(group: GroupSpec) -> dict[str, Partitions]:
    """Give each member its range of every topic that it subscribes to."""
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
    """A topic's partitions cut into as many runs as there are members; the first ones are longer by one."""
    quota, extra = divmod(group.partition_counts[topic_id], members_count)
    starts = [quota * at + min(at, extra) for at in range(members_count + 1)]
    return [range(*between) for between in pairwise(starts)]
