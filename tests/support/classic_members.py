"""Consumers of the classic protocol on a shard of groups, and the opaque fields of their requests."""

from typing import Any

from barnabas.coordinator.result import Pending
from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.groups.classic.join import Join, JoiningClient
from barnabas.wire.consumer_protocol.assignment import ConsumerProtocolAssignment
from barnabas.wire.consumer_protocol.assignment import TopicPartition as AssignedPartition
from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription, TopicPartition
from barnabas.wire.consumer_protocol.versioned import read_assignment, write
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from support.group_worlds import GroupWorld

Partitions = dict[str, set[int]]


def assignment_bytes(partitions: Partitions, user_data: bytes | None = None) -> bytes:
    """Encode the assignment that a leader gives a member."""
    topics = [
        AssignedPartition(topic=name, partitions=sorted(indexes)) for name, indexes in partitions.items()
    ]
    return write(ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data), 0)


class ClassicConsumer:
    """A consumer of the classic protocol, which keeps its member id, generation and assignment."""

    def __init__(self, world: GroupWorld, group_id: str = "g", **fields: Any) -> None:
        """`fields` are those of its JoinGroup request."""
        self.world = world
        self.group_id = group_id
        self.fields = fields
        self.member_id = ""
        self.generation = -1
        self.owned: Partitions = {}
        self.waiting: Pending[Any] | None = None  #: awaiting the response to its last JoinGroup or SyncGroup

    def join(self, *topics: str, protocols: tuple[str, ...] = ("range",), version: int = 9) -> Any:
        """Send JoinGroup, again with the member id if one is required; return the response, None while it is
        pending.
        """
        owned = [TopicPartition(topic=name, partitions=sorted(of)) for name, of in self.owned.items()]
        subscription = write(ConsumerProtocolSubscription(topics=list(topics), owned_partitions=owned), 1)
        client = JoiningClient("classic", "/h", version)
        for _ in range(2):
            request = JoinGroupRequest(
                **{
                    "group_id": self.group_id,
                    "member_id": self.member_id,
                    "session_timeout_ms": 45_000,
                    "rebalance_timeout_ms": 60_000,
                    "protocol_type": "consumer",
                    "protocols": [
                        JoinGroupRequestProtocol(name=name, metadata=subscription) for name in protocols
                    ],
                    **self.fields,
                }
            )
            answer = self.world.ask(
                lambda shard, result, pending, request=request: shard.join_group(
                    result, Join(request, client, pending)
                )
            )
            self._take(answer)
            if getattr(answer, "error_code", None) != ErrorCode.MEMBER_ID_REQUIRED:
                break
        return answer

    def pending_response(self) -> Any:
        """Return the response that was awaited; None if none is awaited or it is still pending."""
        answer = None if self.waiting is None else self.world.answers.get(self.waiting)
        if answer is not None:
            self._take(answer)
        return answer

    def _take(self, answer: Any) -> None:
        self.waiting = self.world.last_request if answer is None else None
        if isinstance(answer, JoinGroupResponse) and answer.error_code in (
            ErrorCode.NONE,
            ErrorCode.MEMBER_ID_REQUIRED,
        ):
            self.member_id, self.generation = answer.member_id, answer.generation_id
        elif isinstance(answer, SyncGroupResponse):
            topics = read_assignment(answer.assignment).assigned_partitions if answer.assignment else []
            self.owned = {topic.topic: set(topic.partitions) for topic in topics}

    def sync(self, **assignments: Partitions) -> Any:
        """Send SyncGroup; a leader sends the partitions of all members, by member id."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            group_instance_id=self.fields.get("group_instance_id"),
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment_bytes(partitions))
                for member_id, partitions in assignments.items()
            ],
        )
        answer = self.world.ask(lambda shard, result, pending: shard.sync_group(result, pending, request))
        self._take(answer)
        return answer

    def beat(self) -> ErrorCode:
        beat = Heartbeat(
            group_id=self.group_id,
            member_id=self.member_id,
            group_instance_id=self.fields.get("group_instance_id"),
            generation_id=self.generation,
        )
        answer: ErrorCode | KafkaError = self.world.ask(
            lambda shard, result, pending: result.answer(pending, shard.heartbeat(result, beat))
        )
        return answer.code if isinstance(answer, KafkaError) else answer

    def leave(self) -> ErrorCode:
        identity = MemberIdentity(
            member_id=self.member_id, group_instance_id=self.fields.get("group_instance_id")
        )
        request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
        answer = self.world.ask(lambda shard, result, pending: shard.leave_group(result, pending, request))
        return answer.code if isinstance(answer, KafkaError) else ErrorCode(answer.members[0].error_code)

    def rejoin(self, *topics: str) -> None:
        """Join and sync again, as a consumer does for as long as it receives REBALANCE_IN_PROGRESS."""
        for _ in range(5):
            self.join(*topics)
            self.sync()
            if self.beat() is ErrorCode.NONE:
                return
        raise AssertionError("the group keeps rebalancing")
