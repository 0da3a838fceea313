"""Text scenarios of groups: clients with a client's memory, and one shard that coordinates them.

A command is a request of a client or an event of the broker. The output lists, in this order: appended records, states
of groups, responses in the order of their arrival.
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
#: Wall time advances in steps of at most this size.
WAITED_AT_ONCE_MS = 600_000

Runner = ShardRunner[GroupShard]
Options = dict[str, str]


class ClientState:
    """A client's state of its membership."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.instance_id: str | None = None
        self.options: Options = {}


class GroupScenario(OffsetCommands):
    """Commands on the group `g` of one shard; the docstring of each method named like a verb is the verb's usage."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.settings = {"node.id": "1", "log.dirs": "/data"}
        self.log = MemoryShardLog()
        self.clients: dict[str, ClientState] = {}
        self.names: dict[str, str] = {}  #: member id -> its client
        self.runner: Runner | None = None
        self._lines: list[Callable[[], str]] = []  #: formatted when all member names are known
        self._asking: set[asyncio.Task[None]] = set()
        self._seen_batches_count = 0
        #: changes of state that were printed, by the identity of the group, which is kept so that no other gets it
        self._seen_changes: dict[int, tuple[ClassicGroup, int]] = {}

    async def run(self, command: str) -> list[str]:
        """Execute a command, and return its output."""
        if self.runner is None:
            await self._start()
        verb, words, options = words_of(command)
        await getattr(self, verb)(words, options)
        await turns()
        self._check()
        lines, self._lines = self._lines, []
        return [*self._new_records(), *self._new_states(), *(line() for line in lines)]

    async def end(self) -> None:
        """Check that no request is pending."""
        if self.runner is not None:
            self.runner.close("the story ends")
        await asyncio.gather(*self._asking)

    @property
    def pending_count(self) -> int:
        """Return the number of requests without a response."""
        return len(self._asking)

    # Events of the broker

    async def broker(self, words: list[str], options: Options) -> None:
        """broker group.max.size=2 ...: applies from now on."""
        self.settings |= options

    async def restart(self, words: list[str], options: Options) -> None:
        """restart: pending requests fail, and a new broker loads the log."""
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

    # Requests of clients

    async def join(self, words: list[str], options: Options) -> None:
        """join A [protocols=range,sticky] [topics=a,b] [type=consumer] [instance=i] [id=x] [version=9]
        [session=10000] [rebalance=60000] [reason=x]: A remembers its options.
        """
        client = self._client(words[0])
        client.options |= options
        client.instance_id = client.options.get("instance")
        options_of_client = client.options
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=int(options_of_client.get("session", 10_000)),
            rebalance_timeout_ms=int(options_of_client.get("rebalance", 60_000)),
            member_id=options.get("id", client.member_id),
            group_instance_id=client.instance_id,
            protocol_type=options_of_client.get("type", "consumer"),
            protocols=_protocols(options_of_client),
            reason=options.get("reason"),
        )
        joining_client = JoiningClient(
            client.name, "/host", int(options_of_client.get("version", NEWEST_VERSION))
        )
        self._send(
            client,
            lambda shard, result, pending: shard.join_group(result, Join(request, joining_client, pending)),
            self._joined,
        )

    async def sync(self, words: list[str], options: Options) -> None:
        """sync A [generation=1] [protocol=range] [B=what-B-gets ...]: a follower sends no assignments."""
        client = self._client(words[0])
        special = {key: options.pop(key) for key in ("generation", "protocol") if key in options}
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=int(special.get("generation", client.generation)),
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_name=special.get("protocol"),
            assignments=[
                SyncGroupRequestAssignment(member_id=self._client(name).member_id, assignment=what.encode())
                for name, what in options.items()
            ],
        )
        self._send(
            client,
            lambda shard, result, pending: shard.sync_group(result, pending, request),
            lambda answer: f"is to work on {bytes(answer.assignment).decode() or 'nothing'}",
        )

    async def heartbeat(self, words: list[str], options: Options) -> None:
        """heartbeat A [generation=1] [id=x] [instance=i]"""
        client = self._client(words[0])
        beat = Heartbeat(
            group_id=GROUP,
            generation_id=int(options.get("generation", client.generation)),
            member_id=options.get("id", client.member_id),
            group_instance_id=options.get("instance", client.instance_id),
        )
        self._send(
            client,
            lambda shard, result, pending: result.answer(pending, shard.heartbeat(result, beat)),
            lambda code: code.name if code else "is in time",
        )

    async def leave(self, words: list[str], options: Options) -> None:
        """leave A [B ...] [instance=i]: one request; an administrator sends instance ids alone."""
        identities = [
            MemberIdentity(
                member_id=self._client(name).member_id, group_instance_id=self._client(name).instance_id
            )
            for name in words
        ]
        if "instance" in options:
            identities.append(MemberIdentity(group_instance_id=options["instance"]))
        request = LeaveGroupRequest(group_id=GROUP, members=identities)
        self._send(
            self._client(words[0] if words else "admin"),
            lambda shard, result, pending: shard.leave_group(result, pending, request),
            lambda answer: "leave: " + ", ".join(ErrorCode(each.error_code).name for each in answer.members),
        )

    async def reset(self, words: list[str], options: Options) -> None:
        """reset A: the client restarts; a static one keeps its instance id."""
        self._client(words[0]).member_id = ""

    async def delete(self, words: list[str], options: Options) -> None:
        """delete: the whole group."""
        self._send(
            self._client("admin"),
            lambda shard, result, pending: shard.delete_group(result, pending, GROUP, 500),
            lambda answer: "the group is deleted",
        )

    # Inspection

    async def describe(self, words: list[str], options: Options) -> None:
        """describe: as DescribeGroups returns it."""
        try:
            group = self._shard.describe_group(GROUP)
        except KafkaError as error:
            self._report(error.code.name)
            return
        protocol = group.protocol_data or "no protocol"
        self._report(f"{group.group_state}, {group.protocol_type or 'no type'}, {protocol}")
        for member in group.members:
            self._report(f"{self._name(member.member_id)}: {bytes(member.member_assignment).decode() or '-'}")

    async def explain(self, words: list[str], options: Options) -> None:
        """explain: the group's last rebalances, the latest first."""
        _, rebalances = self._shard.describe_rebalances(GROUP)
        for line in rebalance_lines(rebalances, self._name):
            self._report(line)

    async def timers(self, words: list[str], options: Options) -> None:
        """timers: the group's timers, with the time left."""
        assert self.runner is not None
        now = asyncio.get_running_loop().time()
        for key, due_s in self.runner._timers.due_s().items():
            if key[0] == EXPIRE_OFFSETS:
                continue  # timers of the shard itself
            words = [str(word) for word in key if word != GROUP]
            named = " ".join(self._name(word) for word in words)
            self._report(f"{named} in {round((due_s - now) * 1000)} ms")

    # Implementation

    async def _start(self) -> None:
        context = GroupCoordinatorContext(lambda: BrokerConfig(self.settings), MetadataImage, Random(1))
        self.runner = ShardRunner(GroupShard(context), self.log, self.clock)
        await self.runner.load()
        self._seen_changes.clear()

    @property
    def _shard(self) -> GroupShard:
        assert self.runner is not None
        return self.runner.shard

    def _client(self, name: str) -> ClientState:
        return self.clients.setdefault(name, ClientState(name))

    def _name(self, member_id: str) -> str:
        return self.names.get(member_id, member_id)

    def _send(
        self,
        client: ClientState,
        event: Callable[[GroupShard, CoordinatorResult, Pending[Any]], None],
        format_response: Callable[[Any], str],
    ) -> None:
        async def ask() -> None:
            assert self.runner is not None
            try:
                answer = await self.runner.handle_request(event, client.name)
            except KafkaError as error:
                self._report(f"{client.name}: {error.code.name}")
                return
            if isinstance(answer, JoinGroupResponse):
                self._remember(client, answer)
            self._lines.append(lambda: f"{client.name}: {format_response(answer)}")

        task = asyncio.get_running_loop().create_task(ask())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def _report(self, line: str) -> None:
        self._lines.append(lambda: line)

    def _remember(self, client: ClientState, answer: JoinGroupResponse) -> None:
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            number = sum(name.startswith(client.name) for name in self.names.values())
            self.names.setdefault(answer.member_id, client.name + "'" * number)
            client.member_id, client.generation = answer.member_id, answer.generation_id

    def _joined(self, answer: JoinGroupResponse) -> str:
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        members = " ".join(self._name(each.member_id) for each in answer.members)
        leads = f", leads {members}" if members else ""
        skips = ", is not to assign" if answer.skip_assignment else ""
        return f"generation {answer.generation_id}, {answer.protocol_name}{leads}{skips}"

    def _new_records(self) -> list[str]:
        batches = self.log.batches[self._seen_batches_count :]
        self._seen_batches_count = len(self.log.batches)
        return [
            f"record {self.record_line(key, value)}"
            for batch in batches
            for (key, value, *_), _ in batch.records
        ]

    def record_line(self, key: Any, value: Any) -> str:
        """Format a record."""
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
                _, seen_count = self._seen_changes.get(id(group), (group, 0))
                lines += [f"state {change.state}" for change in group.story[seen_count:]]
                self._seen_changes[id(group)] = group, len(group.story)
        return lines

    def _check(self) -> None:
        for group in self._shard.groups.values():
            if isinstance(group, ClassicGroup):
                group.validate()


def _protocols(options: Options) -> list[JoinGroupRequestProtocol]:
    topics = options.get("topics", "a").split(",")
    format_response = write(ConsumerProtocolSubscription(topics=topics), 0)
    names = [name for name in options.get("protocols", "range").split(",") if name]
    return [JoinGroupRequestProtocol(name=name, metadata=format_response) for name in names]
