"""Text scenarios of groups whose members use both protocols.

Verbs of the consumer protocol are small words (`join`, `beat`, `leave`); those of the classic protocol are the names of
its requests (`JoinGroup`, `SyncGroup`, `Heartbeat`, `LeaveGroup`).
"""

from typing import Any

from barnabas.wire.consumer_protocol.versioned import read_assignment
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from barnabas.wire.coordinator_records.serde import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupResponse
from support.classic_members import ClassicConsumer, Partitions
from support.consumer_scenarios import ConsumerScenario, Options, topics_of
from support.scenarios import words_of


class MigrationScenario(ConsumerScenario):
    """The group `g` is printed with its type: `state classic Stable`."""

    def __init__(self) -> None:
        super().__init__()
        self.world.set_config(group_initial_rebalance_delay_ms="0")
        self.classic: dict[str, ClassicConsumer] = {}
        self.names: dict[str, str] = {}  #: member id of a classic client -> its name
        self._requests = {
            "JoinGroup": self.join_group,
            "SyncGroup": self.sync_group,
            "Heartbeat": self.heartbeat,
            "LeaveGroup": self.leave_group,
        }

    async def run(self, command: str) -> list[str]:
        """Execute a command, and return its output."""
        verb, words, options = words_of(command)
        return self.outcome(self._requests.get(verb) or getattr(self, verb), words, options)

    def outcome(self, action: Any, words: list[str], options: Options) -> list[str]:
        """Include the responses to pending requests."""

        def act(words: list[str], options: Options) -> list[str]:
            lines = [*action(words, options), *self._pending_responses()]
            for name, client in self.classic.items():
                if client.member_id:
                    self.names.setdefault(client.member_id, self._new_name(name))
            return lines

        return [self._with_names(line) for line in super().outcome(act, words, options)]

    def _with_names(self, line: str) -> str:
        """Replace member ids of classic clients, which others may see before the client itself does."""
        for member_id, name in self.names.items():
            line = line.replace(member_id, name)
        return line

    # Requests of classic clients

    def join_group(self, words: list[str], options: Options) -> list[str]:
        """JoinGroup C topics=a [protocols=range,sticky] [type=consumer] [instance=i] [new]: it uses the member id
        that it is given; a `new` process has lost it.
        """
        [name] = [word for word in words if word != "new"]
        if name not in self.classic or "new" in words:
            fields = {"group_instance_id": options["instance"]} if "instance" in options else {}
            if "type" in options:
                fields["protocol_type"] = options["type"]
            self.classic[name] = ClassicConsumer(self.world, **fields)
        protocols = tuple(options.get("protocols", "range").split(","))
        return self._joined(name, self.classic[name].join(*topics_of(options), protocols=protocols))

    def sync_group(self, words: list[str], options: Options) -> list[str]:
        """SyncGroup C [C=a-0,a-1 D=a-2]: the leader of a classic group sends the assignments."""
        [name] = words
        given = {self.classic[each].member_id: _partitions(what) for each, what in options.items()}
        return self._synced(name, self.classic[name].sync(**given))

    def heartbeat(self, words: list[str], options: Options) -> list[str]:
        """Heartbeat C [generation=3] [as=N]: it uses the id of another member."""
        [name] = words
        client = self.classic[name]
        own_id = client.member_id
        client.member_id = options.get("as", own_id)
        client.generation = int(options.get("generation", client.generation))
        code = client.beat()
        client.member_id = own_id
        return [f"{name}: {code.name if code else 'is in time'}"]

    def leave_group(self, words: list[str], options: Options) -> list[str]:
        """LeaveGroup C"""
        [name] = words
        code = self.classic[name].leave()
        return [f"{name}: {code.name if code else 'has left'}"]

    # Formatting

    def _pending_responses(self) -> list[str]:
        lines = []
        for name, client in self.classic.items():
            answer = client.pending_response()
            if answer is not None:
                formatter = self._joined if isinstance(answer, JoinGroupResponse) else self._synced
                lines += formatter(name, answer)
        return lines

    def _joined(self, name: str, answer: Any) -> list[str]:
        if not isinstance(answer, JoinGroupResponse):
            return _refused(name, answer)
        if answer.error_code:
            return [f"{name}: {ErrorCode(answer.error_code).name}"]
        members = " ".join(each.member_id for each in answer.members)
        leads = f", leads {members}" if members else ""
        return [f"{name}: generation {answer.generation_id}, {answer.protocol_name}{leads}"]

    def _new_name(self, name: str) -> str:
        """Name a client that had another member id before: C, then C', then C''."""
        return name + "'" * sum(each.rstrip("'") == name for each in self.names.values())

    def _synced(self, name: str, answer: Any) -> list[str]:
        if answer is None or isinstance(answer, KafkaError):
            return _refused(name, answer)
        return [f"{name}: is to work on {_format_partitions(self.classic[name].owned)}"]

    def state(self) -> str:
        """Format the state with the group's type; a classic group starts without members."""
        group = self.world.shard.groups.get("g")
        return "Empty" if group is None else f"{group.group_type} {group.state_name}"

    def line(self, record: CoordinatorRecord) -> str:
        """Format a record; a classic group has one for all its members."""
        key, value = record.key, record.value
        if not isinstance(key, GroupMetadataKey):
            return super().line(record)
        if value is None:
            return "classic group: none"
        assert isinstance(value, GroupMetadataValue)
        members = " ".join(f"{each.member_id}={_assigned(bytes(each.assignment))}" for each in value.members)
        return f"classic group: generation {value.generation}, {members or 'no members'}"


def _refused(name: str, answer: KafkaError | None) -> list[str]:
    return [] if answer is None else [f"{name}: {answer.code.name}"]


def _partitions(text: str) -> Partitions:
    """Parse `a-0,a-1` as a leader's assignment."""
    found: Partitions = {}
    for each in text.split(","):
        topic, _, index = each.rpartition("-")
        found.setdefault(topic, set()).add(int(index))
    return found


def _format_partitions(partitions: Partitions) -> str:
    named = [f"{topic}-{index}" for topic, of in sorted(partitions.items()) for index in sorted(of)]
    return " ".join(named) or "nothing"


def _assigned(data: bytes) -> str:
    topics = read_assignment(data).assigned_partitions if data else []
    return _format_partitions({topic.topic: set(topic.partitions) for topic in topics}).replace(" ", ",")
