"""Random events: no partition ever has two owners, and every group becomes stable."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.groups.consumer.leaving import MemberToRemove
from barnabas.groups.rebalance_history import EventKind
from barnabas.wire.errors import KafkaError
from support.consumer_groups import ConsumerMember, group_of, named, reconcile
from support.group_worlds import GroupWorld

MEMBERS = st.sampled_from(["m1", "m2", "m3", "s1", "s2"])
TOPICS = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, min_size=1)


class Groups(RuleBasedStateMachine):
    """Clients that behave like consumers, and sometimes fail to."""

    @initialize(interval=st.sampled_from(["0", "1000"]), assignor=st.sampled_from(["uniform", "range"]))
    def begin(self, interval: str, assignor: str) -> None:
        self.world = GroupWorld(
            group_consumer_assignment_interval_ms=interval, group_consumer_assignors=assignor
        )
        for name in ("a", "b"):
            self.world.create_topic(name, 3)
        self.members: dict[str, ConsumerMember] = {}

    @rule(member_id=MEMBERS, topics=TOPICS, with_regex=st.booleans())
    def join(self, member_id: str, topics: list[str], with_regex: bool) -> None:
        fields: dict[str, object] = {"instance_id": member_id} if member_id.startswith("s") else {}
        if with_regex:
            fields["subscribed_topic_regex"] = "[bc]"
        member = ConsumerMember(self.world, member_id, rebalance_timeout_ms=30_000, **fields)
        member.join(*topics)
        if member.error is None:
            self.members[member_id] = member

    @rule(member_id=MEMBERS, reports_owned=st.booleans())
    def beat(self, member_id: str, reports_owned: bool) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.beat(reports_owned=reports_owned)
            if member.error is not None:
                del self.members[member_id]

    @rule(member_id=MEMBERS, topics=TOPICS)
    def resubscribe(self, member_id: str, topics: list[str]) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.beat(reports_owned=True, subscribed_topic_names=topics)

    @rule(member_id=MEMBERS, for_good=st.booleans())
    def leave(self, member_id: str, for_good: bool) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            member.leave(-2 if member_id.startswith("s") and not for_good else -1)

    @rule(duration_ms=st.sampled_from([500, 2_000, 20_000, 50_000]))
    def pass_time(self, duration_ms: int) -> None:
        self.world.pass_time(duration_ms)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @rule()
    def create_or_grow_topic(self) -> None:
        if "c" not in self.world.image.topics:
            self.world.create_topic("c", 2)
        elif (count := self.world.image.topics["c"].partition_count) < 5:
            self.world.grow_topic("c", count + 1)

    @rule()
    def delete_topic(self) -> None:
        if "c" in self.world.image.topics:
            self.world.delete_topic("c")

    @invariant()
    def owners_are_unique(self) -> None:
        """A client never owns what the coordinator has assigned to another."""
        if not hasattr(self, "world") or "g" not in self.world.shard.groups:
            return
        group = group_of(self.world)
        for member_id, member in self.members.items():
            if member_id not in group.members:
                continue  # it has been fenced and will learn of it
            for topic_id, indexes in member.assignment.items():
                for index in indexes:
                    assert group.owners.get((topic_id, index), member_id) == member_id

    def teardown(self) -> None:
        """Without further events, live members get exactly the partitions that they subscribe to."""
        if not hasattr(self, "world") or "g" not in self.world.shard.groups:
            return
        group = group_of(self.world)
        for member_id, member in tuple(self.members.items()):
            if isinstance(member.beat(reports_owned=True), KafkaError):
                del self.members[member_id]
        for member_id in list(group.members):
            if member_id not in self.members:
                self.world.ask(
                    lambda shard, result, pending, member_id=member_id: shard.consumer.remove(
                        result, group, EventKind.LEFT, [MemberToRemove(group.members[member_id], "")]
                    )
                )
        if not self.members:
            return
        self.world.pass_time(11_000)
        reconcile(self.world, *self.members.values())
        owned = [
            (name, index)
            for member_id in self.members
            for name, indexes in named(self.world, group.members[member_id].assigned).items()
            for index in indexes
        ]
        assert len(owned) == len(set(owned))
        assert {name for name, _ in owned} == {
            name for name in self.world.image.topics if group.is_subscribed_to(name)
        }


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=40, stateful_step_count=30)
