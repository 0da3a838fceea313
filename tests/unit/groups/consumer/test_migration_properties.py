"""Members of both protocols join, leave and time out in one group, whose invariants always hold."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from barnabas.wire.errors import ErrorCode, KafkaError
from support.classic_members import ClassicConsumer
from support.consumer_groups import ConsumerMember
from support.group_worlds import GroupWorld

OLD = st.sampled_from(["c1", "c2", "i1"])
NEW = st.sampled_from(["m1", "m2", "i1"])
TOPICS = st.lists(st.sampled_from(["a", "b"]), unique=True, min_size=1)


class MixedGroups(RuleBasedStateMachine):
    """The world checks every group after every event."""

    @initialize(policy=st.sampled_from(["bidirectional", "upgrade", "downgrade"]))
    def start(self, policy: str) -> None:
        self.world = GroupWorld(
            group_consumer_assignment_interval_ms="0",
            group_initial_rebalance_delay_ms="0",
            group_consumer_migration_policy=policy,
        )
        for name in ("a", "b"):
            self.world.create_topic(name, 3)
        self.old: dict[str, ClassicConsumer] = {}
        self.new: dict[str, ConsumerMember] = {}

    @rule(name=OLD, topics=TOPICS)
    def classic_joins(self, name: str, topics: list[str]) -> None:
        fields = {"group_instance_id": name} if name.startswith("i") else {}
        self.old.setdefault(name, ClassicConsumer(self.world, **fields)).join(*topics)
        self.world.pass_time(0)

    @rule(name=OLD, assigns=st.booleans())
    def classic_syncs(self, name: str, assigns: bool) -> None:
        member = self.old.get(name)
        if member is not None:
            member.sync(**({member.member_id: {"a": {0, 1}}} if assigns else {}))

    @rule(name=OLD)
    def classic_beats(self, name: str) -> None:
        if name in self.old:
            self.old[name].beat()

    @rule(name=OLD)
    def classic_leaves(self, name: str) -> None:
        if name in self.old:
            self.old.pop(name).leave()

    @rule(name=NEW, topics=TOPICS)
    def consumer_joins(self, name: str, topics: list[str]) -> None:
        fields = {"instance_id": name} if name.startswith("i") else {}
        member = ConsumerMember(self.world, f"new-{name}", **fields)
        member.join(*topics)
        self.new[name] = member

    @rule(name=NEW, reports_owned=st.booleans())
    def consumer_beats(self, name: str, reports_owned: bool) -> None:
        if name in self.new:
            self.new[name].beat(reports_owned=reports_owned)

    @rule(name=NEW, for_good=st.booleans())
    def consumer_leaves(self, name: str, for_good: bool) -> None:
        member = self.new.pop(name, None)
        if member is not None:
            member.leave(-1 if for_good or not name.startswith("i") else -2)

    @rule(duration_ms=st.sampled_from([1_000, 30_000, 50_000]))
    def pass_time(self, duration_ms: int) -> None:
        self.world.pass_time(duration_ms)

    @rule(works=st.booleans())
    def appending(self, works: bool) -> None:
        self.world.refusal = None if works else KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    @rule()
    def restart(self) -> None:
        self.world.restart()


TestMixedGroups = MixedGroups.TestCase
TestMixedGroups.settings = settings(max_examples=60, stateful_step_count=30)
