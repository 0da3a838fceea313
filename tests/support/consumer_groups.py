"""Members of consumer groups that tests drive, and their assignments as text."""

from typing import Any

from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import Assigned, ConsumerGroupMember
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from support.group_worlds import GroupWorld

CALLER = Caller("client", "/127.0.0.1", 1)
REBALANCE_TIMEOUT_MS = 60_000

#: Topic name -> indexes.
Partitions = dict[str, set[int]]


def join_request(
    group_id: str, member_id: str, /, *topics: str, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    """Build the first heartbeat of a member."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        subscribed_topic_names=list(topics),
        topic_partitions=[],
    )
    return _with(request, fields)


def _with(request: ConsumerGroupHeartbeatRequest, fields: dict[str, Any]) -> ConsumerGroupHeartbeatRequest:
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def heartbeat_request(
    group_id: str, member_id: str, epoch: int, /, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    """Build a heartbeat whose optional fields are all unset."""
    request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)
    return _with(request, fields)


class ConsumerMember:
    """A member as a client implements it: it keeps its epoch and assignment, and revokes partitions when required."""

    def __init__(self, world: GroupWorld, member_id: str, group_id: str = "g", **fields: Any) -> None:
        """`fields` are those of its first heartbeat."""
        self.world = world
        self.member_id = member_id
        self.group_id = group_id
        self.fields = fields
        self.epoch = 0
        self.assignment: dict[bytes, set[int]] = {}  #: topic id -> indexes
        self.error: KafkaError | None = None

    @property
    def owned(self) -> Partitions:
        """Return its partitions of topics that exist; a topic that was recreated is a different topic."""
        names = self.world.image.topic_names
        return {names[topic_id]: of for topic_id, of in self.assignment.items() if topic_id in names}

    def join(self, *topics: str, caller: Caller = CALLER) -> Any:
        """Join with no partitions owned."""
        self.epoch, self.assignment = 0, {}
        request = join_request(self.group_id, self.member_id, *topics, **self.fields)
        return self.send(request, caller)

    def beat(self, *, reports_owned: bool = False, **fields: Any) -> Any:
        """Send a heartbeat; with `reports_owned` it reports the owned partitions."""
        request = heartbeat_request(self.group_id, self.member_id, self.epoch, **fields)
        request.instance_id = self.fields.get("instance_id")
        if reports_owned:
            request.topic_partitions = self.owned_topics()
        return self.send(request)

    def leave(self, epoch: int = -1) -> Any:
        """Leave the group, or with -2 leave temporarily as a static member."""
        request = heartbeat_request(self.group_id, self.member_id, epoch)
        request.instance_id = self.fields.get("instance_id")
        self.assignment = {}
        return self.send(request)

    def send(self, request: ConsumerGroupHeartbeatRequest, caller: Caller = CALLER) -> Any:
        """Send any heartbeat, and apply the response."""
        answer = self.world.ask(
            lambda shard, result, pending: shard.consumer.heartbeat(result, pending, request, caller)
        )
        if isinstance(answer, ConsumerGroupHeartbeatResponse):
            self.error = None
            self._take(answer)
        else:
            self.error = answer
        return answer

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assignment = {
                topic.topic_id: set(topic.partitions) for topic in answer.assignment.topic_partitions
            }

    def owned_topics(self) -> list[TopicPartitions]:
        """Return the owned partitions as a heartbeat reports them."""
        return [
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in self.assignment.items()
        ]


def group_of(world: GroupWorld, group_id: str = "g") -> ConsumerGroup:
    """Return the shard's state of the group."""
    group = world.shard.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def stored(world: GroupWorld, member_id: str, group_id: str = "g") -> ConsumerGroupMember:
    """Return the shard's state of a member."""
    return group_of(world, group_id).members[member_id]


def named(world: GroupWorld, assigned: Assigned) -> Partitions:
    """Return partitions by topic name."""
    return {world.image.topic_names[topic_id]: set(epochs) for topic_id, epochs in assigned.items()}


def reconcile(world: GroupWorld, *members: ConsumerMember) -> None:
    """Let members send heartbeats until nothing changes any more."""
    for _ in range(20):
        for member in members:
            member.beat(reports_owned=True)
            assert member.error is None, member.error
        world.pass_time(1_000)
        if group_of(world).state_name == "Stable" and all(
            not is_unreconciled(world, each) for each in members
        ):
            return
    raise AssertionError(f"the group does not become stable: {group_of(world)}")


def is_unreconciled(world: GroupWorld, member: ConsumerMember) -> bool:
    """Whether a member has not received its current assignment yet."""
    return named(world, stored(world, member.member_id).assigned) != member.owned
