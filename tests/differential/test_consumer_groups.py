"""Members of consumer groups get the same epochs and partitions from both brokers."""

import itertools
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.consumer_protocol.subscription import TopicPartition as SubscribedPartitions
from barnabas.wire.consumer_protocol.versioned import read_assignment, write
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.wire.schema import Message
from differential.brokers import wait_for
from differential.budget import EXAMPLES, IS_FIXED
from differential.sides import Side
from differential.world import Pair

TOPICS = {"group-a": 4, "group-b": 3, "group-c": 1}
A, B, C = TOPICS

_numbers = itertools.count(1)

#: The largest session timeout for classic members: none expires while tests run.
SESSION_TIMEOUT_MS = 1_800_000
REBALANCE_TIMEOUT_MS = 1_800_000


class Join(NamedTuple):
    who: str
    topics: tuple[str, ...] = (A,)
    fields: dict[str, Any] = {}  # noqa: RUF012


class Beat(NamedTuple):
    who: str
    reports_owned: bool = False
    epoch_by: int = 0  #: offset from its real epoch
    fields: dict[str, Any] = {}  # noqa: RUF012


class Leave(NamedTuple):
    who: str
    epoch: int = -1


class ClassicJoin(NamedTuple):
    """A JoinGroup request that reports the member's partitions."""

    who: str
    topics: tuple[str, ...] = (A,)


class ClassicSync(NamedTuple):
    who: str


class ClassicBeat(NamedTuple):
    who: str
    generation_by: int = 0


class ClassicLeave(NamedTuple):
    who: str


Step = Join | Beat | Leave | ClassicJoin | ClassicSync | ClassicBeat | ClassicLeave


class Coordinated:
    """One group on one of the brokers, and its members' own states. Names of static members begin with `s`."""

    def __init__(self, side: Side, group_id: str, names: dict[bytes, str], assignor: str) -> None:
        self.side, self.group_id, self.names, self.assignor = side, group_id, names, assignor
        self.ids = {name: topic_id for topic_id, name in names.items()}
        self.epochs: dict[str, int] = {}
        self.classic_ids: dict[str, str] = {}
        self.owned: dict[str, list[tuple[str, tuple[int, ...]]]] = {}

    def ask(self, request: Message, response: type[Message], version: int) -> Any:
        body = self.side.exchange(request, response, version).body
        assert body is not None, request
        return body

    def do(self, step: Step) -> object:
        response = getattr(self, f"_{type(step).__name__.lower()}")(step)
        return response, self.described()

    def _join(self, step: Join) -> object:
        request_fields = {
            "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
            "subscribed_topic_names": list(step.topics),
            "server_assignor": self.assignor,
            "topic_partitions": [],
            **step.fields,
        }
        self.owned[step.who] = []
        return self._send(step.who, 0, request_fields)

    def _beat(self, step: Beat) -> object:
        request_fields: dict[str, Any] = dict(step.fields)
        if step.reports_owned:
            request_fields["topic_partitions"] = [
                TopicPartitions(topic_id=self.ids[name], partitions=list(indexes))
                for name, indexes in self.owned.get(step.who, [])
            ]
        return self._send(step.who, self.epochs.get(step.who, 1) + step.epoch_by, request_fields)

    def _leave(self, step: Leave) -> object:
        self.owned[step.who] = []
        return self._send(step.who, step.epoch, {})

    def _send(self, who: str, epoch: int, request_fields: dict[str, Any]) -> object:
        instance_id = who.rstrip("'") if who.startswith("s") else None
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self.group_id,
                "member_id": who,
                "member_epoch": epoch,
                "instance_id": instance_id,
                **request_fields,
            }
        )
        answer = self.ask(request, ConsumerGroupHeartbeatResponse, 1)
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        self.epochs[who] = max(answer.member_epoch, 1)
        assigned = None if answer.assignment is None else self.named(answer.assignment)
        if assigned is not None:
            self.owned[who] = assigned
        return answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms, assigned

    # Members of the classic protocol: each broker assigns member ids; instance ids determine their order.

    def _classicjoin(self, step: ClassicJoin) -> object:
        owned = [SubscribedPartitions(name, list(indexes)) for name, indexes in self.owned.get(step.who, [])]
        subscription = write(
            ConsumerProtocolSubscription(topics=list(step.topics), owned_partitions=owned), 1
        )
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.classic_ids.get(step.who, ""),
            group_instance_id=step.who,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )
        answer = self.ask(request, JoinGroupResponse, 9)
        if not answer.error_code:
            self.classic_ids[step.who] = answer.member_id
        self.epochs[step.who] = answer.generation_id
        code = ErrorCode(answer.error_code).name
        return code, answer.generation_id, answer.protocol_type, answer.protocol_name, answer.skip_assignment

    def _classicsync(self, step: ClassicSync) -> object:
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.epochs.get(step.who, 1),
            member_id=self.classic_ids.get(step.who, "nobody"),
            group_instance_id=step.who,
            protocol_type="consumer",
            protocol_name="range",
        )
        answer = self.ask(request, SyncGroupResponse, 5)
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        topics = read_assignment(answer.assignment).assigned_partitions if answer.assignment else []
        self.owned[step.who] = sorted((each.topic, tuple(sorted(each.partitions))) for each in topics)
        return self.owned[step.who], answer.protocol_type, answer.protocol_name

    def _classicbeat(self, step: ClassicBeat) -> object:
        generation = self.epochs.get(step.who, 1) + step.generation_by
        member_id = self.classic_ids.get(step.who, "nobody")
        request = HeartbeatRequest(self.group_id, generation, member_id, step.who)
        return ErrorCode(self.ask(request, HeartbeatResponse, 4).error_code).name

    def _classicleave(self, step: ClassicLeave) -> object:
        identity = MemberIdentity(self.classic_ids.get(step.who, "nobody"), step.who)
        answer = self.ask(
            LeaveGroupRequest(group_id=self.group_id, members=[identity]), LeaveGroupResponse, 5
        )
        return ErrorCode(answer.error_code).name, [ErrorCode(each.error_code).name for each in answer.members]

    def named(self, assignment: Any) -> list[tuple[str, tuple[int, ...]]]:
        return sorted(
            (self.names[topic.topic_id], tuple(sorted(topic.partitions)))
            for topic in assignment.topic_partitions
        )

    def described(self) -> object:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group_id])
        [group] = self.ask(request, ConsumerGroupDescribeResponse, 1).groups
        who = {member_id: who for who, member_id in self.classic_ids.items()}
        members = [
            (
                who.get(each.member_id, each.member_id),
                each.instance_id,
                each.rack_id,
                each.member_epoch,
                sorted(each.subscribed_topic_names),
                each.subscribed_topic_regex,
                self.named(each.assignment),
                self.named(each.target_assignment),
                each.member_type,
            )
            for each in group.members
        ]
        members.sort()
        code = ErrorCode(group.error_code).name
        return (
            code,
            group.group_state,
            group.group_epoch,
            group.assignment_epoch,
            group.assignor_name,
            members,
        )


def topic_names(side: Side) -> dict[bytes, str]:
    requested_topics = [MetadataRequestTopic(name=name) for name in TOPICS]
    answer = side.exchange(MetadataRequest(topics=requested_topics), MetadataResponse, 12).body
    assert isinstance(answer, MetadataResponse)
    return {topic.topic_id: topic.name or "" for topic in answer.topics}


class Both(NamedTuple):
    pair: Pair
    names: tuple[dict[bytes, str], dict[bytes, str]]

    def groups(self, assignor: str = "range") -> tuple[Coordinated, Coordinated]:
        group_id = f"cg-{next(_numbers)}"
        return (
            Coordinated(self.pair.kafka, group_id, self.names[0], assignor),
            Coordinated(self.pair.barnabas, group_id, self.names[1], assignor),
        )


def is_given_all_topics(answer: ConsumerGroupHeartbeatResponse | None) -> bool:
    """Whether the response has partitions of all topics, which Kafka's coordinator sees a moment after their
    creation.
    """
    return (
        answer is not None
        and answer.assignment is not None
        and len(answer.assignment.topic_partitions) == len(TOPICS)
    )


@pytest.fixture(scope="module")
def both(pair: Pair) -> Both:
    for side in (pair.kafka, pair.barnabas):
        topics = [CreatableTopic(name, count, 1) for name, count in TOPICS.items()]
        side.exchange(CreateTopicsRequest(topics, 10_000), CreateTopicsResponse, 5)
        join = ConsumerGroupHeartbeatRequest(
            "ready", "m", 0, None, None, REBALANCE_TIMEOUT_MS, list(TOPICS), None, None, []
        )
        wait_for(side, join, ConsumerGroupHeartbeatResponse, 1, is_given_all_topics)
    return Both(pair, (topic_names(pair.kafka), topic_names(pair.barnabas)))


def check(both: Both, steps: list[Step]) -> None:
    kafka, barnabas = both.groups()
    for at, step in enumerate(steps):
        assert barnabas.do(step) == kafka.do(step), steps[: at + 1]


HISTORIES: dict[str, list[Step]] = {
    "one member": [Join("m1"), Beat("m1"), Beat("m1", True), Leave("m1"), Beat("m1"), Join("m1")],
    "two members": [
        Join("m1"),
        Join("m2"),
        Beat("m2"),
        Beat("m1"),
        Beat("m2"),
        Beat("m1", True),
        Beat("m2"),
        Beat("m1"),
        Leave("m1"),
        Beat("m2"),
    ],
    "a subscription that changes": [
        Join("m1", (A, B)),
        Beat("m1", fields={"subscribed_topic_names": [B, C]}),
        Beat("m1", True),
        Beat("m1", fields={"subscribed_topic_names": []}),
        Beat("m1", True),
        Beat("m1", fields={"subscribed_topic_names": ["nowhere"]}),
    ],
    "epochs that are off": [
        Join("m1"),
        Beat("m1", epoch_by=1),
        Beat("m1", epoch_by=-1),
        Join("m2"),
        Beat("m1"),
        Beat("m1", True),
        Beat("m1", True, -1),
        Beat("m1", False, -1),
        Beat("m9"),
        Leave("m9"),
    ],
    "a static member": [
        Join("s1"),
        Join("m2"),
        Beat("s1"),
        Beat("s1", True),
        Beat("m2"),
        Join("s1'"),
        Leave("s1", -2),
        Join("s1'"),
        Beat("s1'"),
        Beat("s1"),
        Leave("s1"),
        Leave("s1'", -2),
        Join("s1'", (A, B)),
        Leave("s1'"),
        Beat("m2"),
    ],
    "nothing subscribed": [Join("m1", ()), Beat("m1"), Join("m2", ("nowhere",)), Leave("m1")],
    "requests that cannot be": [
        Join("m1", fields=fields)
        for fields in (
            {"rebalance_timeout_ms": -1},
            {"topic_partitions": None},
            {"subscribed_topic_names": None},
            {"server_assignor": "sticky"},
            {"server_assignor": ""},
            {"rack_id": ""},
            {"instance_id": ""},
            {"instance_id": " "},
            {"group_id": ""},
            {"group_id": " "},
            {"member_id": ""},
            {"subscribed_topic_regex": "("},
            {"subscribed_topic_regex": "(?=a)"},
            {"member_epoch": -3},
            {"member_epoch": -2},
        )
    ],
    "a classic member among others": [
        Join("m1"),
        ClassicJoin("c1"),
        ClassicSync("c1"),
        ClassicBeat("c1"),
        ClassicBeat("c1", 1),
        Beat("m1"),
        Beat("m1", True),
        ClassicBeat("c1"),
        ClassicSync("c1"),
        ClassicJoin("c1"),
        ClassicSync("c1"),
        ClassicBeat("c1"),
        ClassicJoin("c2"),
        ClassicBeat("c1"),
        ClassicJoin("c1"),
        ClassicSync("c1"),
        ClassicJoin("c1"),
        ClassicSync("c1"),
        ClassicSync("c2"),
        ClassicBeat("c2"),
        ClassicJoin("c2"),
        ClassicSync("c2"),
        ClassicLeave("c2"),
        ClassicLeave("c2"),
        ClassicBeat("c3"),
        Leave("c1"),
    ],
    "down to the classic protocol, and up": [
        Join("m1"),
        ClassicJoin("c1"),
        Beat("m1"),
        Beat("m1", True),
        ClassicJoin("c1"),
        ClassicSync("c1"),
        Leave("m1"),
        ClassicBeat("c1"),
        ClassicJoin("c1"),
        Join("m2"),
        ClassicBeat("c1"),
        ClassicJoin("c1"),
        ClassicSync("c1"),
        Beat("m2"),
        ClassicLeave("c1"),
        Beat("m2"),
    ],
    "full requests": [
        Join("m1"),
        Beat(
            "m1", True, fields={"rebalance_timeout_ms": REBALANCE_TIMEOUT_MS, "subscribed_topic_names": [A]}
        ),
        Beat("m1", True, fields={"rebalance_timeout_ms": REBALANCE_TIMEOUT_MS}),
        Beat(
            "m1", False, fields={"rebalance_timeout_ms": REBALANCE_TIMEOUT_MS, "subscribed_topic_names": [A]}
        ),
        Beat("m1", False, fields={"rack_id": "r", "server_assignor": "uniform"}),
    ],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_has_the_same_responses_as_in_kafka(both: Both, name: str) -> None:
    check(both, HISTORIES[name])


members = st.sampled_from(["m1", "m2", "m3", "s1", "s1'"])
#: For one epoch Kafka may assign nothing to any member when a member without subscriptions joins.
topics = st.lists(st.sampled_from([A, B, C]), unique=True, min_size=1, max_size=3).map(tuple)
resubscriptions = st.builds(lambda names: {"subscribed_topic_names": list(names)}, topics)
steps = st.one_of(
    st.builds(Join, members, topics, st.just({})),
    st.builds(Beat, members, st.booleans(), st.sampled_from([0, 0, 0, 0, 0, 0, -1, 1]), st.just({})),
    st.builds(Beat, members, st.booleans(), st.just(0), st.just({})),
    st.builds(Beat, members, st.just(True), st.just(0), resubscriptions),
    st.builds(Leave, members, st.sampled_from([-1, -1, -2])),
)


@settings(
    max_examples=EXAMPLES,
    derandomize=IS_FIXED,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
@given(st.lists(steps, min_size=4, max_size=16))
def test_random_histories_have_the_same_responses_as_in_kafka(both: Both, steps: list[Step]) -> None:
    check(both, [Join("m1"), *steps])


@pytest.mark.parametrize("joining", [[(A,), (A,), (A,)], [(A, B), (B, C), (A, B, C)], [(A,), (B,), (A, B)]])
def test_uniform_assignments_are_as_balanced_as_in_kafka(both: Both, joining: list[tuple[str, ...]]) -> None:
    """Each broker may choose the partitions; only their numbers must be equal."""
    found = []
    for group in both.groups("uniform"):
        whos = [f"m{at}" for at in range(len(joining))]
        for who, subscribed in zip(whos, joining, strict=True):
            group.do(Join(who, subscribed))
        for who in whos * 4:
            group.do(Beat(who, True))
        _, state, epoch, _, assignor, _ = group.described()  # type: ignore[misc]
        counts = sorted(sum(len(indexes) for _, indexes in group.owned[who]) for who in whos)
        found.append((state, epoch, assignor, counts))
    assert found[0] == found[1]


def test_a_regex_subscription_eventually_gets_the_same_topics_as_in_kafka(both: Both) -> None:
    """Kafka resolves topics in the background, Barnabas at once, so first responses may differ."""
    found = []
    for group in both.groups():
        regex = {"subscribed_topic_names": None, "subscribed_topic_regex": "group-[ab]"}
        group.do(Join("m1", (), regex))
        while not group.owned["m1"]:
            group.do(Beat("m1", True))
        state = group.described()
        found.append((group.owned["m1"], state[1], state[5][0][5]))  # type: ignore[index]
    assert found[0] == found[1]


def test_groups_are_listed_as_in_kafka(both: Both) -> None:
    found = []
    for group in both.groups():
        group.do(Join("m1"))
        request = ListGroupsRequest(states_filter=["Stable"], types_filter=["consumer"])
        answer = group.ask(request, ListGroupsResponse, 5)
        [listed] = [each for each in answer.groups if each.group_id == group.group_id]
        found.append((listed.protocol_type, listed.group_state, listed.group_type))
    assert found[0] == found[1]
