"""Text scenarios of consumer groups: members of the group `g`, and one shard that coordinates them.

A command is a request of a member or an event around it. The output lists, in this order: appended records, the state
of the group if it has changed, the response.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from barnabas.groups.consumer.member import MemberState
from barnabas.groups.consumer.records import append_current, read_assigned, read_state, read_target
from barnabas.wire.coordinator_records import consumer_group_current_member_assignment as current
from barnabas.wire.coordinator_records import consumer_group_member_metadata as metadata
from barnabas.wire.coordinator_records import consumer_group_metadata as epoch
from barnabas.wire.coordinator_records import consumer_group_partition_metadata as partitions
from barnabas.wire.coordinator_records import consumer_group_regular_expression as regex
from barnabas.wire.coordinator_records import consumer_group_target_assignment_member as target
from barnabas.wire.coordinator_records import consumer_group_target_assignment_metadata as assignment
from barnabas.wire.coordinator_records.serde import CoordinatorRecord
from barnabas.wire.errors import KafkaError
from support.consumer_groups import ConsumerMember, group_of, stored
from support.group_worlds import GroupWorld
from support.rebalances import rebalance_lines
from support.scenarios import words_of

Options = dict[str, str]
#: Executes a command, and returns responses.
Action = Callable[[list[str], Options], list[str]]


class ConsumerScenario:
    """Commands on the group `g`; the docstring of each method named like a verb is the verb's usage."""

    def __init__(self) -> None:
        self.world = GroupWorld(group_consumer_assignment_interval_ms="0")
        self.members: dict[str, ConsumerMember] = {}
        self._state = "Empty"

    async def run(self, command: str) -> list[str]:
        """Execute a command, and return its output."""
        verb, words, options = words_of(command)
        return self.outcome(getattr(self, verb), words, options)

    def outcome(self, action: Action, words: list[str], options: Options) -> list[str]:
        """Return the records, the new state and the responses of an action."""
        first = len(self.world.log)
        responses = action(words, options)
        records = [self.line(self.world._read(key, value)) for key, value in self.world.log[first:]]
        return [*(f"record {line}" for line in records if line), *self._new_state(), *responses]

    # Events around members

    def broker(self, words: list[str], options: Options) -> list[str]:
        """broker group.consumer.max.size=2 ...: applies from now on."""
        self.world.set_config(**{key.replace(".", "_"): value for key, value in options.items()})
        return []

    def topic(self, words: list[str], options: Options) -> list[str]:
        """topic a 4: is created, or grows to this number of partitions; topic a gone: is deleted."""
        name, count = words
        if count == "gone":
            self.world.delete_topic(name)
        elif name in self.world.image.topics:
            self.world.grow_topic(name, int(count))
        else:
            self.world.create_topic(name, int(count))
        return []

    def wait(self, words: list[str], options: Options) -> list[str]:
        """wait 45000: milliseconds."""
        self.world.pass_time(int(words[0]))
        return []

    def restart(self, words: list[str], options: Options) -> list[str]:
        """restart: another broker loads the log."""
        self.world.restart()
        return []

    def newer(self, words: list[str], options: Options) -> list[str]:
        """newer A: a broker of a later version has left A in a state that this version does not know."""
        member = replace(stored(self.world, words[0]), state=MemberState.UNKNOWN)
        self.world.run_event(lambda shard, result: append_current(result, "g", member))
        return []

    # Requests of members

    def join(self, words: list[str], options: Options) -> list[str]:
        """join A [topics=a,b] [regex=a.*] [instance=i] [assignor=range] [rebalance=60000]: a new client each time."""
        fields: dict[str, Any] = {}
        if "regex" in options:
            fields["subscribed_topic_regex"] = options["regex"]
        if "instance" in options:
            fields["instance_id"] = options["instance"]
        if "assignor" in options:
            fields["server_assignor"] = options["assignor"]
        if "rebalance" in options:
            fields["rebalance_timeout_ms"] = int(options["rebalance"])
        member = self.members[words[0]] = ConsumerMember(self.world, words[0], **fields)
        return self._format_answer(words[0], member.join(*topics_of(options)))

    def beat(self, words: list[str], options: Options) -> list[str]:
        """beat A [owned] [topics=b] [epoch=3]: with `owned` it reports its partitions."""
        member = self.members[words[0]]
        member.epoch = int(options.get("epoch", member.epoch))
        fields = {"subscribed_topic_names": topics_of(options)} if "topics" in options else {}
        return self._format_answer(words[0], member.beat(reports_owned="owned" in words, **fields))

    def leave(self, words: list[str], options: Options) -> list[str]:
        """leave A [awhile]"""
        return self._format_answer(words[0], self.members[words[0]].leave(-2 if "awhile" in words else -1))

    def explain(self, words: list[str], options: Options) -> list[str]:
        """explain: the group's last rebalances, the latest first."""
        _, rebalances = self.world.shard.describe_rebalances("g")
        return rebalance_lines(rebalances, lambda member_id: member_id)

    # Formatting

    def _format_answer(self, name: str, answer: Any) -> list[str]:
        if isinstance(answer, KafkaError):
            return [f"{name}: {answer.code.name}"]
        if answer.assignment is None:
            return [f"{name}: epoch {answer.member_epoch}"]
        owned = " ".join(
            f"{topic}-{at}" for topic, of in sorted(self.members[name].owned.items()) for at in of
        )
        return [f"{name}: epoch {answer.member_epoch}, has {owned or 'nothing'}"]

    def _new_state(self) -> list[str]:
        state = self.state()
        before, self._state = self._state, state
        return [] if state == before else [f"state {state}"]

    def state(self) -> str:
        """Format the group's state."""
        return group_of(self.world).state_name if "g" in self.world.shard.groups else "Empty"

    def _partitions(self, partitions: Any) -> str:
        names = self.world.image.topic_names
        named = [
            f"{names.get(topic_id, 'gone')}-{index}"
            for topic_id, indexes in partitions.items()
            for index in sorted(indexes)
        ]
        return " ".join(sorted(named)) or "nothing"

    def line(self, record: CoordinatorRecord) -> str:
        """Format a record."""
        key, value = record.key, record.value
        if isinstance(key, metadata.ConsumerGroupMemberMetadataKey):
            return f"member {key.member_id}: {_subscription(value)}"
        if isinstance(key, current.ConsumerGroupCurrentMemberAssignmentKey):
            return f"assignment {key.member_id}: {self._current(value)}"
        if isinstance(key, target.ConsumerGroupTargetAssignmentMemberKey):
            subscription = "none" if value is None else self._partitions(read_target(value))  # type: ignore[arg-type]
            return f"target {key.member_id}: {subscription}"
        if isinstance(key, epoch.ConsumerGroupMetadataKey):
            return "group: none" if value is None else f"group: epoch {value.epoch}"  # type: ignore[attr-defined]
        if isinstance(key, assignment.ConsumerGroupTargetAssignmentMetadataKey):
            return "targets: none" if value is None else f"targets: epoch {value.assignment_epoch}"  # type: ignore[attr-defined]
        if isinstance(key, partitions.ConsumerGroupPartitionMetadataKey):
            return "partition metadata: none"  # brokers before 4.1 wrote it like this
        assert isinstance(key, regex.ConsumerGroupRegularExpressionKey), key
        matched = "none" if value is None else ",".join(value.topics) or "no topics"  # type: ignore[attr-defined]
        return f"expression {key.regular_expression}: {matched}"

    def _current(self, value: Any) -> str:
        if value is None:
            return "none"
        has = self._partitions(read_assigned(value.assigned_partitions, value.member_epoch))
        gives = read_assigned(value.partitions_pending_revocation, value.member_epoch)
        state = read_state(value.state).name
        giving = f", gives up {self._partitions(gives)}" if gives else ""
        return f"epoch {value.member_epoch}, {state}, has {has}{giving}"


def topics_of(options: Options) -> list[str]:
    """Return the topics that a command names as `topics=a,b`."""
    return [name for name in options.get("topics", "").split(",") if name]


def _subscription(value: Any) -> str:
    if value is None:
        return "none"
    names = ",".join(value.subscribed_topic_names) or "no topics"
    pattern = f" and {value.subscribed_topic_regex}" if value.subscribed_topic_regex else ""
    return f"subscribes to {names}{pattern}"
