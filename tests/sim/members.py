"""The members of a consumer group (KIP-848): no partition may belong to two of them."""

import asyncio
import random
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from barnabas.base.ids import random_id
from barnabas.client.core.coordinators import KeyType, find_coordinator
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from sim.applications import FAILURES, IDLE, OFFSETS_TOPIC, PARTITIONS_COUNT, PLAIN, Application, Journal
from sim.clock import SimulatedClock

MEMBERS_COUNT = 3
GROUP = "members"
SUBSCRIBED = (PLAIN, IDLE)
#: Those of the brokers of a simulation.
SESSION_S = 6.0
HEARTBEAT_S = 1.0
#: A member that does not give up a partition is fenced by its session, and not earlier.
REBALANCE_TIMEOUT_MS = 300_000
#: Heartbeats after which a member stays, leaves, or stands still for longer than its session.
STAYS_SHARE, LEAVES_SHARE = 0.9, 0.06
STANDS_STILL_S = (SESSION_S, 2 * SESSION_S)
#: How long a member needs until it has given up a partition.
GIVING_UP_S = 1.5

#: The member joins again. The group itself is not found if a power failure has taken all of its records.
_FENCED = frozenset(
    {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}
)

#: Topic id and index.
Owned = tuple[bytes, int]


@dataclass
class Claim:
    """A partition belongs to a member until its session ends."""

    member: str
    until_s: float


class Ownership:
    """What the members of the group own, as they know it.

    A former coordinator that does not know its successor yet still answers heartbeats, as in Kafka. Such answers are
    not evidence that a member owns something.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._claims: dict[Owned, Claim] = {}

    def take(self, member: str, partition: Owned, now_s: float, until_s: float) -> None:
        """A member begins to use a partition."""
        claim = self._claims.get(partition)
        if until_s <= now_s or self._journal.has_former_leader(OFFSETS_TOPIC):  # another may own it by now
            if claim is None or claim.until_s <= now_s:
                self._claims[partition] = Claim(member, now_s)  # until its next heartbeat is answered
            return
        if claim is not None and claim.member != member and claim.until_s > now_s:
            may_be_forgotten = self._journal.lost_before_s(OFFSETS_TOPIC) >= 0
            if not may_be_forgotten:
                self._journal.wrong.append(
                    f"two owners: {member} got partition {partition[1]} of {partition[0].hex()[:8]} "
                    f"{claim.until_s - now_s:.3f} s before the session of {claim.member} ends"
                )
        self._claims[partition] = Claim(member, until_s)

    def keep(self, member: str, until_s: float) -> None:
        """The coordinator has answered a heartbeat, which was sent a session before."""
        if self._journal.has_former_leader(OFFSETS_TOPIC):
            return
        for claim in self._claims.values():
            if claim.member == member:
                claim.until_s = until_s

    def release(self, member: str, partitions: Set[Owned] | None = None) -> None:
        """A member has stopped to use partitions, or all of them."""
        for partition, claim in list(self._claims.items()):
            if claim.member == member and (partitions is None or partition in partitions):
                del self._claims[partition]

    def is_complete(self, now_s: float) -> bool:
        """Return whether each partition belongs to a member."""
        owned = sum(claim.until_s > now_s for claim in self._claims.values())
        return owned == len(SUBSCRIBED) * PARTITIONS_COUNT


class GroupMember(Application):
    """An application that belongs to a group."""

    def __init__(
        self,
        name: str,
        bootstrap: str,
        clock: SimulatedClock,
        rng: random.Random,
        journal: Journal,
        ownership: Ownership,
        is_quiet: Callable[[], bool],
    ) -> None:
        """:param is_quiet: Returns whether members should stay."""
        super().__init__(name, bootstrap, clock, rng, journal)
        self._ownership = ownership
        self._is_quiet = is_quiet
        self._member_id = ""


class Member(GroupMember):
    """A member that heartbeats, and now and then leaves or stands still."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._epoch = 0
        self._owned: set[Owned] = set()

    async def belong(self) -> None:
        """Join the group, and stay a member."""
        self._begin()
        while True:
            try:
                await self._heartbeat()
            except FAILURES:
                await asyncio.sleep(self.rng.uniform(0, HEARTBEAT_S))
                continue
            await asyncio.sleep(self.rng.uniform(0.5, 1) * HEARTBEAT_S)
            chance = self.rng.random()
            if chance < STAYS_SHARE or self._is_quiet():
                continue
            if chance < STAYS_SHARE + LEAVES_SHARE:
                await self._leave()
            else:
                await asyncio.sleep(self.rng.uniform(*STANDS_STILL_S))

    def _begin(self) -> None:
        """Forget everything, and join as a new member with the next heartbeat."""
        self._ownership.release(self.name)
        self._owned.clear()
        self._member_id, self._epoch = random_id(self.rng), 0

    async def _heartbeat(self) -> None:
        sent_s = self._now_s
        response = await self._ask(self._epoch)
        if response.error_code in _FENCED:
            self._begin()
            return
        if response.error_code:
            return  # the coordinator moves or loads
        self._epoch = response.member_epoch
        self._ownership.keep(self.name, sent_s + SESSION_S)
        if response.assignment is None:
            return
        assigned = {
            (topic.topic_id, index)
            for topic in response.assignment.topic_partitions
            for index in topic.partitions
        }
        for partition in sorted(assigned):
            self._ownership.take(self.name, partition, self._now_s, sent_s + SESSION_S)
        given_up = self._owned - assigned
        self._owned |= assigned
        if given_up:
            await asyncio.sleep(self.rng.uniform(0, GIVING_UP_S))
            self._owned -= given_up
            self._ownership.release(self.name, given_up)

    async def _leave(self) -> None:
        self._ownership.release(self.name)
        self._owned.clear()
        with suppress(*FAILURES):  # its session ends
            await self._ask(-1)
        self._begin()

    async def _ask(self, epoch: int) -> ConsumerGroupHeartbeatResponse:
        topics: dict[bytes, list[int]] = {}
        for topic_id, index in sorted(self._owned):
            topics.setdefault(topic_id, []).append(index)
        request = ConsumerGroupHeartbeatRequest(
            GROUP,
            self._member_id,
            epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=list(SUBSCRIBED),
            topic_partitions=[TopicPartitions(topic_id, indexes) for topic_id, indexes in topics.items()],
        )
        coordinator = await find_coordinator(self.once, KeyType.GROUP, GROUP)
        response: ConsumerGroupHeartbeatResponse = await self.once.send(request, coordinator)
        return response
