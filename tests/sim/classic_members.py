"""The members of a group of the classic protocol, one of them static (KIP-345).

Like members of a consumer group, they own partitions until their session ends: no partition may belong to two of them.
They commit offsets in their generation: when one of a newer generation is committed, an older one is refused.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.client.core.coordinators import KeyType, find_coordinator
from barnabas.wire.consumer_protocol.assignment import ConsumerProtocolAssignment
from barnabas.wire.consumer_protocol.assignment import TopicPartition as AssignedPartitions
from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.consumer_protocol.versioned import read_assignment, write
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from barnabas.wire.schema import Message
from sim.applications import FAILURES, OFFSETS_TOPIC, PARTITIONS_COUNT, Journal
from sim.members import (
    HEARTBEAT_S,
    LEAVES_SHARE,
    REBALANCE_TIMEOUT_MS,
    SESSION_S,
    STANDS_STILL_S,
    STAYS_SHARE,
    SUBSCRIBED,
    GroupMember,
)

CLASSIC_GROUP = "classic"
PROTOCOL_TYPE, PROTOCOL = "consumer", "range"
#: A join waits for the others, at most until their sessions end.
JOIN_TIMEOUT_MS = 9_000
#: Share of the heartbeats that are followed by a commit.
COMMITS_SHARE = 0.7
#: The last version with topic names.
COMMIT_VERSION_MAX = 9

#: The member joins again, as a new one.
_UNKNOWN = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
#: The member joins again.
_REBALANCE = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})


class Generations:
    """The newest generation in which an offset of each partition was committed, as the members know it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._newest: dict[TopicPartition, tuple[int, float]] = {}  #: and the time of its response

    def note(self, tp: TopicPartition, generation: int, sent_s: float, now_s: float) -> None:
        """A commit of a generation, sent at a time, was acknowledged now."""
        newest, acknowledged_s = self._newest.get(tp, (-1, -1.0))
        if generation >= newest:
            self._newest[tp] = generation, now_s
        elif acknowledged_s < sent_s and self._journal.lost_before_s(OFFSETS_TOPIC) < acknowledged_s:
            self._journal.wrong.append(
                f"old generation: an offset of {tp} was committed in generation {generation}, after one in {newest}"
            )


class ClassicMember(GroupMember):
    """A member that joins, heartbeats and commits, and now and then leaves, stands still or starts again."""

    def __init__(self, *arguments: Any, generations: Generations, is_static: bool) -> None:
        super().__init__(*arguments)
        self._generations = generations
        self._instance_id = self.name if is_static else None
        self._generation = -1
        self._owned: list[TopicPartition] = []

    async def belong(self) -> None:
        """Join the group, and stay a member."""
        while True:
            try:
                if self._generation < 0:
                    await self._join()
                else:
                    await self._stay()
            except FAILURES:
                await asyncio.sleep(self.rng.uniform(0, HEARTBEAT_S))

    async def _stay(self) -> None:
        if self._owned and self.rng.random() < COMMITS_SHARE:
            await self._commit()  # it may have been still for long, and not know of a new generation
        await self._heartbeat()
        await asyncio.sleep(self.rng.uniform(0.5, 1) * HEARTBEAT_S)
        chance = self.rng.random()
        if chance < STAYS_SHARE or self._is_quiet():
            return
        if chance < STAYS_SHARE + LEAVES_SHARE:
            await self._leave()
        else:
            await asyncio.sleep(self.rng.uniform(*STANDS_STILL_S))

    def _give_up(self, *, member_id: str | None = None) -> None:
        """Stop using all partitions, and join again; with another member id if one is given."""
        self._ownership.release(self.name)
        self._owned, self._generation = [], -1
        if member_id is not None:
            self._member_id = member_id

    async def _join(self) -> None:
        subscription = write(ConsumerProtocolSubscription(topics=list(SUBSCRIBED)), 1)
        joined: JoinGroupResponse = await self._ask(
            JoinGroupRequest(
                CLASSIC_GROUP,
                session_timeout_ms=int(SESSION_S * 1000),
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(PROTOCOL, subscription)],
            )
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
        elif joined.error_code in _UNKNOWN:
            self._member_id = ""
        elif joined.error_code == ErrorCode.NONE:
            self._member_id = joined.member_id
            await self._sync(joined)
        else:
            await asyncio.sleep(self.rng.uniform(0, HEARTBEAT_S))  # the coordinator moves or loads

    async def _sync(self, joined: JoinGroupResponse) -> None:
        leads = joined.leader == joined.member_id and not joined.skip_assignment
        sent_s = self._now_s
        synced: SyncGroupResponse = await self._ask(
            SyncGroupRequest(
                CLASSIC_GROUP,
                joined.generation_id,
                joined.member_id,
                self._instance_id,
                PROTOCOL_TYPE,
                joined.protocol_name,
                _assignments(joined.members) if leads else [],
            )
        )
        if synced.error_code:
            self._give_up(member_id="" if synced.error_code in _UNKNOWN else None)
            return
        self._generation = joined.generation_id
        self._owned = [
            TopicPartition(topic.topic, index)
            for topic in read_assignment(synced.assignment).assigned_partitions
            for index in topic.partitions
        ]
        for tp in self._owned:
            owned = tp.topic.encode(), tp.partition
            self._ownership.take(self.name, owned, self._now_s, sent_s + SESSION_S)

    async def _heartbeat(self) -> None:
        sent_s = self._now_s
        response: HeartbeatResponse = await self._ask(
            HeartbeatRequest(CLASSIC_GROUP, self._generation, self._member_id, self._instance_id)
        )
        if response.error_code == ErrorCode.NONE:
            self._ownership.keep(self.name, sent_s + SESSION_S)
        elif response.error_code in _REBALANCE:
            self._give_up()
        elif response.error_code in _UNKNOWN:
            self._give_up(member_id="")

    async def _commit(self) -> None:
        tp, generation, sent_s = self.rng.choice(self._owned), self._generation, self._now_s
        partition = OffsetCommitRequestPartition(tp.partition, generation)
        response: OffsetCommitResponse = await self._ask(
            OffsetCommitRequest(
                CLASSIC_GROUP,
                generation,
                self._member_id,
                self._instance_id,
                topics=[OffsetCommitRequestTopic(tp.topic, partitions=[partition])],
            ),
            version_max=COMMIT_VERSION_MAX,
        )
        if response.topics[0].partitions[0].error_code == ErrorCode.NONE:
            self._generations.note(tp, generation, sent_s, self._now_s)

    async def _leave(self) -> None:
        """Leave the group; a static member starts again, which the coordinator does not notice before it joins."""
        member_id = self._member_id
        self._give_up(member_id="")
        if self._instance_id is None:
            with suppress(*FAILURES):  # its session ends
                await self._ask(LeaveGroupRequest(CLASSIC_GROUP, members=[MemberIdentity(member_id)]))

    async def _ask(self, request: Message, *, version_max: int | None = None) -> Any:
        coordinator = await find_coordinator(self.once, KeyType.GROUP, CLASSIC_GROUP)
        return await self.once.send(request, coordinator, version_max=version_max, timeout_ms=JOIN_TIMEOUT_MS)


def _assignments(members: Sequence[JoinGroupResponseMember]) -> list[SyncGroupRequestAssignment]:
    """Return each member's share of the partitions, in turn."""
    partitions = [(topic, index) for topic in SUBSCRIBED for index in range(PARTITIONS_COUNT)]
    found = []
    for number, member in enumerate(sorted(members, key=lambda each: each.member_id)):
        own = partitions[number :: len(members)]
        assigned = [
            AssignedPartitions(topic, [index for name, index in own if name == topic]) for topic in SUBSCRIBED
        ]
        assignment = write(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)
        found.append(SyncGroupRequestAssignment(member.member_id, assignment))
    return found
