"""Uniform assignment for members with different subscriptions: partitions move until no move improves the balance."""

from barnabas.groups.consumer.assignors.group_spec import GroupSpec, Partitions


def assign_heterogeneous(group: GroupSpec) -> dict[str, Partitions]:
    """Assign free partitions to the members with the fewest, then balance until no move to another subscriber would
    help.

    Then, of two members, one has at most one partition more than the other, unless the other subscribes to none of its
    topics.
    """
    return _Balance(group).target()


class _Balance:
    """An assignment that is being balanced."""

    def __init__(self, group: GroupSpec) -> None:
        self._held: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in group.members}
        self._counts = dict.fromkeys(group.members, 0)
        self._subscribers: dict[bytes, list[str]] = {}
        for member_id in sorted(group.members):
            for topic_id in sorted(group.members[member_id].topic_ids):
                self._subscribers.setdefault(topic_id, []).append(member_id)
        self._keep(group)
        self._give_free(group)
        while self._level():
            pass

    def target(self) -> dict[str, Partitions]:
        """Return the target of each member."""
        return {
            member_id: {topic_id: frozenset(indexes) for topic_id, indexes in held.items() if indexes}
            for member_id, held in self._held.items()
        }

    def _keep(self, group: GroupSpec) -> None:
        """Start with the previous targets, without partitions that do not exist or are not subscribed any more."""
        for member_id, member in group.members.items():
            for topic_id in member.topic_ids & member.target.keys():
                for index in member.target[topic_id]:
                    if index < group.partition_counts[topic_id]:
                        self._give(member_id, topic_id, index)

    def _give_free(self, group: GroupSpec) -> None:
        """Assign free partitions, first of the topics with the fewest subscribers, which leave the least choice."""
        order = sorted(self._subscribers, key=lambda topic_id: (len(self._subscribers[topic_id]), topic_id))
        for topic_id in order:
            members = self._subscribers[topic_id]
            assigned = set[int]().union(*(self._held[member].get(topic_id, ()) for member in members))
            for index in sorted(set(range(group.partition_counts[topic_id])) - assigned):
                self._give(min(members, key=self._counts.__getitem__), topic_id, index)

    def _level(self) -> bool:
        """Move partitions of each topic from the member with most to the one with fewest; return whether any moved."""
        moved = False
        for topic_id, members in self._subscribers.items():
            while self._move_one(topic_id, members):
                moved = True
        return moved

    def _move_one(self, topic_id: bytes, members: list[str]) -> bool:
        owners = [member_id for member_id in members if self._held[member_id].get(topic_id)]
        if not owners:
            return False
        most = max(owners, key=self._counts.__getitem__)
        least = min(members, key=self._counts.__getitem__)
        if self._counts[most] - self._counts[least] < 2:  # a move would only swap the two
            return False
        index = max(self._held[most][topic_id])
        self._held[most][topic_id].remove(index)
        self._counts[most] -= 1
        self._give(least, topic_id, index)
        return True

    def _give(self, member_id: str, topic_id: bytes, index: int) -> None:
        self._held[member_id].setdefault(topic_id, set()).add(index)
        self._counts[member_id] += 1
