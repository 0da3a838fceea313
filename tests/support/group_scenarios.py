"""Stories of groups as text: clients that remember what a client remembers, and one shard that coordinates them.

A command is what a client sends or what happens to the broker. What comes of it is written down in this order: records
that were appended, states that groups went through, answers as they came.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.base.clock import ManualClock
from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.coordinator.runner import ShardRunner
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.groups.classic.join import Join, JoiningClient
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.offsets.manager import EXPIRE_OFFSETS
from barnabas.groups.shard import GroupShard
from barnabas.metadata.image import MetadataImage
from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.consumer_protocol.versioned import write
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support.loop import turns
from support.offset_commands import OffsetCommands, offset_line
from support.rebalances import rebalance_lines
from support.scenarios import words_of
from support.shards import MemoryShardLog

GROUP = "g"
NEWEST_VERSION = 9
#: Wall time goes on in such steps at most.
WAITED_AT_ONCE_MS = 600_000

Runner = ShardRunner[GroupShard]
Options = dict[str, str]


class Speaker:
    """A client: what it remembers of its membership."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.instance_id: str | None = None
        self.options: Options = {}


class GroupScenario(OffsetCommands):
    """Commands on the group `g` of one shard; each method that is named like a verb says how the verb is used."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.settings = {"node.id": "1", "log.dirs": "/data"}
        self.log = MemoryShardLog()
        self.speakers: dict[str, Speaker] = {}
        self.names: dict[str, str] = {}  #: member id -> whose it is
        self.runner: Runner | None = None
        self._lines: list[Callable[[], str]] = []  #: told when all names are known
        self._asking: set[asyncio.Task[None]] = set()
        self._told_batches_count = 0
        self._told_changes: dict[int, int] = {}

    async def run(self, command: str) -> list[str]:
        """What comes of one command."""
        if self.runner is None:
            await self._start()
        verb, words, options = words_of(command)
        await getattr(self, verb)(words, options)
        await turns()
        self._check()
        lines, self._lines = self._lines, []
        return [*self._new_records(), *self._new_states(), *(line() for line in lines)]

    async def end(self) -> None:
        """Nobody waits any longer."""
        if self.runner is not None:
            self.runner.close("the story ends")
        await asyncio.gather(*self._asking)

    @property
    def asking_count(self) -> int:
        """How many requests have not been answered."""
        return len(self._asking)

    # What happens to the broker

    async def broker(self, words: list[str], options: Options) -> None:
        """broker group.max.size=2 ...: holds from now on."""
        self.settings |= options

    async def restart(self, words: list[str], options: Options) -> None:
        """restart: who waits is told, and a new broker loads what the log has."""
        await self.end()
        await self._start()

    async def wait(self, words: list[str], options: Options) -> None:
        """wait 3000: milliseconds."""
        left_ms = int(words[0])
        while left_ms > 0:
            part_ms = min(left_ms, WAITED_AT_ONCE_MS)
            end_ms = self.clock.now_ms + part_ms
            await asyncio.sleep(part_ms / 1000)
            self.clock.now_ms = end_ms
            left_ms -= part_ms

    async def disk(self, words: list[str], options: Options) -> None:
        """disk fails | works: for appending records."""
        fails = words == ["fails"]
        self.log.refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk fails") if fails else None

    # What clients send

    async def join(self, words: list[str], options: Options) -> None:
        """join A [protocols=range,sticky] [topics=a,b] [type=consumer] [instance=i] [id=x] [version=9]
        [session=10000] [rebalance=60000] [reason=x]: A remembers its options.
        """
        speaker = self._speaker(words[0])
        speaker.options |= options
        speaker.instance_id = speaker.options.get("instance")
        given = speaker.options
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(given.get("session", 10_000)),
            rebalance_timeout_ms=int(given.get("rebalance", 60_000)),
            member_id=options.get("id", speaker.member_id),
            group_instance_id=speaker.instance_id,
            protocol_type=given.get("type", "consumer"),
            protocols=_protocols(given),
            reason=options.get("reason"),
        )
        client = JoiningClient(speaker.name, "/host", int(given.get("version", NEWEST_VERSION)))
        self._ask(
            speaker,
            lambda shard, result, pending: shard.join_group(result, Join(request, client, pending)),
            self._joined,
        )

    async def sync(self, words: list[str], options: Options) -> None:
        """sync A [generation=1] [protocol=range] [B=what-B-gets ...]: who has nothing to bring names nobody."""
        speaker = self._speaker(words[0])
        special = {key: options.pop(key) for key in ("generation", "protocol") if key in options}
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(special.get("generation", speaker.generation)),
            member_id=speaker.member_id,
            group_instance_id=speaker.instance_id,
            protocol_name=special.get("protocol"),
            assignments=[
                SyncGroupRequestAssignment(member_id=self._speaker(name).member_id, assignment=what.encode())
                for name, what in options.items()
            ],
        )
        self._ask(
            speaker,
            lambda shard, result, pending: shard.sync_group(result, pending, request),
            lambda answer: f"is to work on {bytes(answer.assignment).decode() or 'nothing'}",
        )

    async def heartbeat(self, words: list[str], options: Options) -> None:
        """heartbeat A [generation=1] [id=x] [instance=i]"""
        speaker = self._speaker(words[0])
        beat = Heartbeat(
            group_id=GROUP,
            generation_id=int(options.get("generation", speaker.generation)),
            member_id=options.get("id", speaker.member_id),
            group_instance_id=options.get("instance", speaker.instance_id),
        )
        self._ask(
            speaker,
            lambda shard, result, pending: result.answer(pending, shard.heartbeat(result, beat)),
            lambda code: code.name if code else "is in time",
        )

    async def leave(self, words: list[str], options: Options) -> None:
        """leave A [B ...] [instance=i]: one request; an instance alone is what an administrator sends."""
        identities = [
            MemberIdentity(
                member_id=self._speaker(name).member_id, group_instance_id=self._speaker(name).instance_id
            )
            for name in words
        ]
        if "instance" in options:
            identities.append(MemberIdentity(group_instance_id=options["instance"]))
        request = LeaveGroupRequest(group_id=GROUP, members=identities)
        self._ask(
            self._speaker(words[0] if words else "admin"),
            lambda shard, result, pending: shard.leave_group(result, pending, request),
            lambda answer: "leave: " + ", ".join(ErrorCode(each.error_code).name for each in answer.members),
        )

    async def forget(self, words: list[str], options: Options) -> None:
        """forget A: the client starts anew; a static one keeps its instance id."""
        self._speaker(words[0]).member_id = ""

    async def delete(self, words: list[str], options: Options) -> None:
        """delete: the whole group."""
        self._ask(
            self._speaker("admin"),
            lambda shard, result, pending: shard.delete_group(result, pending, GROUP),
            lambda answer: "the group is deleted",
        )

    # What is there

    async def describe(self, words: list[str], options: Options) -> None:
        """describe: as DescribeGroups tells."""
        try:
            group = self._shard.describe_group(GROUP)
        except KafkaError as error:
            self._tell(error.code.name)
            return
        told = group.protocol_data or "no protocol"
        self._tell(f"{group.group_state}, {group.protocol_type or 'no type'}, {told}")
        for member in group.members:
            self._tell(f"{self._name(member.member_id)}: {bytes(member.member_assignment).decode() or '-'}")

    async def explain(self, words: list[str], options: Options) -> None:
        """explain: the group's last rebalances, the latest first."""
        _, rebalances = self._shard.describe_rebalances(GROUP)
        for line in rebalance_lines(rebalances, self._name):
            self._tell(line)

    async def timers(self, words: list[str], options: Options) -> None:
        """timers: what the group waits for, and how long still."""
        assert self.runner is not None
        now = asyncio.get_running_loop().time()
        for key, due_s in self.runner._timers.due_s().items():
            if key[0] == EXPIRE_OFFSETS:
                continue  # the shard's own
            words = [str(word) for word in key if word != GROUP]
            named = " ".join(self._name(word) for word in words)
            self._tell(f"{named} in {round((due_s - now) * 1000)} ms")

    # How it is done

    async def _start(self) -> None:
        context = GroupCoordinatorContext(lambda: BrokerConfig(self.settings), MetadataImage, Random(1))
        self.runner = ShardRunner(GroupShard(context), self.log, self.clock)
        await self.runner.load()
        self._told_changes.clear()

    @property
    def _shard(self) -> GroupShard:
        assert self.runner is not None
        return self.runner.shard

    def _speaker(self, name: str) -> Speaker:
        return self.speakers.setdefault(name, Speaker(name))

    def _name(self, member_id: str) -> str:
        return self.names.get(member_id, member_id)

    def _ask(
        self,
        speaker: Speaker,
        event: Callable[[GroupShard, CoordinatorResult, Pending[Any]], None],
        told: Callable[[Any], str],
    ) -> None:
        async def ask() -> None:
            assert self.runner is not None
            try:
                answer = await self.runner.handle_request(event, speaker.name)
            except KafkaError as error:
                self._tell(f"{speaker.name}: {error.code.name}")
                return
            if isinstance(answer, JoinGroupResponse):
                self._remember(speaker, answer)
            self._lines.append(lambda: f"{speaker.name}: {told(answer)}")

        task = asyncio.get_running_loop().create_task(ask())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def _tell(self, line: str) -> None:
        self._lines.append(lambda: line)

    def _remember(self, speaker: Speaker, answer: JoinGroupResponse) -> None:
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            number = sum(name.startswith(speaker.name) for name in self.names.values())
            self.names.setdefault(answer.member_id, speaker.name + "'" * number)
            speaker.member_id, speaker.generation = answer.member_id, answer.generation_id

    def _joined(self, answer: JoinGroupResponse) -> str:
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        members = " ".join(self._name(each.member_id) for each in answer.members)
        leads = f", leads {members}" if members else ""
        skips = ", is not to assign" if answer.skip_assignment else ""
        return f"generation {answer.generation_id}, {answer.protocol_name}{leads}{skips}"

    def _new_records(self) -> list[str]:
        batches = self.log.batches[self._told_batches_count :]
        self._told_batches_count = len(self.log.batches)
        return [
            f"record {self.record_line(key, value)}"
            for batch in batches
            for (key, value, *_), _ in batch.records
        ]

    def record_line(self, key: Any, value: Any) -> str:
        """A record for people."""
        if isinstance(key, bytes):
            return offset_line(key, value)
        if not isinstance(key, GroupMetadataKey):
            return repr((key, value))
        if value is None:
            return f"group {key.group}: none"
        assert isinstance(value, GroupMetadataValue)
        members = " ".join(
            f"{self._name(each.member_id)}={bytes(each.assignment).decode() or '-'}" for each in value.members
        )
        leader = f"leader {self._name(value.leader)}" if value.leader else "no leader"
        return (
            f"group {key.group}: generation {value.generation}, {value.protocol or 'no protocol'}, "
            f"{leader}, {members or 'no members'}"
        )

    def _new_states(self) -> list[str]:
        lines = []
        for group in self._shard.groups.values():
            if isinstance(group, ClassicGroup):
                told = self._told_changes.get(id(group), 0)
                lines += [f"state {change.state}" for change in group.story[told:]]
                self._told_changes[id(group)] = len(group.story)
        return lines

    def _check(self) -> None:
        for group in self._shard.groups.values():
            if isinstance(group, ClassicGroup):
                group.validate()


def _protocols(options: Options) -> list[JoinGroupRequestProtocol]:
    topics = options.get("topics", "a").split(",")
    told = write(ConsumerProtocolSubscription(topics=topics), 0)
    names = [name for name in options.get("protocols", "range").split(",") if name]
    return [JoinGroupRequestProtocol(name=name, metadata=told) for name in names]
