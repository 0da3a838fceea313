"""The life of a classic group: requests that are valid or invalid in each state get the same responses as in Kafka."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import pytest

from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.consumer_protocol.versioned import write
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.wire.schema import Message
from differential.compare import Difference, brief, compare
from differential.sides import Side
from differential.symbols import Member, Name, resolve
from differential.world import World

G: Any = Name("g")
GONE: Any = Name("gone")
UNKNOWN_MEMBER: Any = "nobody"
A, B, C = (Member(number) for number in range(3))

SUBSCRIPTION = write(ConsumerProtocolSubscription(topics=["a"]), 1)
NEWEST_JOIN = 9
REBALANCE_TIMEOUT_S = 30.0
SHOWN_TIMEOUT_S = 5.0
OLD_VERSION = 3  #: the version of JoinGroup in which new members join at once


def join(member: Any = "", instance: str | None = None, *protocols: str, **fields: Any) -> JoinGroupRequest:
    request_fields = {
        "session_timeout_ms": 60_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [
            JoinGroupRequestProtocol(name, SUBSCRIPTION) for name in protocols or ("range", "sticky")
        ],
    } | fields
    return JoinGroupRequest(group_id=G, member_id=member, group_instance_id=instance, **request_fields)


def sync(member: Any, generation: int, *assigned: tuple[Any, bytes], **fields: Any) -> SyncGroupRequest:
    assignments = [SyncGroupRequestAssignment(each, what) for each, what in assigned]
    request_fields = {"group_id": G, "protocol_type": "consumer", "protocol_name": "range"} | fields
    return SyncGroupRequest(
        generation_id=generation, member_id=member, assignments=assignments, **request_fields
    )


def heartbeat(member: Any, generation: int, **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(**({"group_id": G, "generation_id": generation, "member_id": member} | fields))


def leave(*identities: tuple[Any, str | None], group: Any = G) -> LeaveGroupRequest:
    members = [MemberIdentity(member, instance, "because") for member, instance in identities]
    return LeaveGroupRequest(group_id=group, member_id=identities[0][0], members=members)


class Client:
    """A client with its own connections to both brokers."""

    def __init__(self, world: World) -> None:
        pair = copy(world.pair)
        pair.kafka = replace(pair.kafka, _connection=None)
        pair.barnabas = replace(pair.barnabas, _connection=None)
        self.world = replace(world, pair=pair)

    def send(self, request: Message, version: int | None = None) -> None:
        """Send to both; their responses must not differ."""
        versions = self.world.pair.apis[request.API_KEY].versions
        version = versions.last if version is None else version
        differences = [each for each in self.world.exchange(request, version) if not self._is_of_others(each)]
        assert not differences, "\n".join([*map(str, differences), brief(request)])

    def _is_of_others(self, difference: Difference) -> bool:
        """Whether a difference is in a group that an earlier test has left behind, whose members expire meanwhile."""
        group = re.match(r"groups\[(w\d+-)", difference.at)
        return group is not None and group[1] != self.world.kafka_names.prefix

    def send_in_all_versions(self, request: Message, first: int = 0) -> None:
        versions = self.world.pair.apis[request.API_KEY].versions
        for version in range(max(first, versions.first), versions.last + 1):
            self.send(request, version)

    def look(self) -> None:
        """Send all read requests about groups, once Kafka shows a new group, which takes it a moment."""
        deadline_s = time.monotonic() + SHOWN_TIMEOUT_S
        while self.world.exchange(DescribeGroupsRequest([G]), 5) and time.monotonic() < deadline_s:
            pass
        self.send_in_all_versions(DescribeGroupsRequest([G, GONE, ""], True))
        self.send_in_all_versions(DescribeGroupsRequest([G, G]))
        self.send_in_all_versions(ListGroupsRequest())
        for state in ("stable", "Empty", "PreparingRebalance", "completingrebalance", "Dead", "nope"):
            self.send(ListGroupsRequest([state]), 4)
            self.send(ListGroupsRequest([state], ["Classic"]), 5)
        for kind in ("consumer", "classic", "nope", ""):
            self.send(ListGroupsRequest([], [kind]), 5)

    def close(self) -> None:
        self.world.pair.kafka.disconnect()
        self.world.pair.barnabas.disconnect()


@contextmanager
def clients(world: World) -> Iterator[tuple[Client, Client]]:
    """Return two clients."""
    both = Client(world), Client(world)
    try:
        yield both
    finally:
        for client in both:
            client.close()


def test_requests_to_a_group_that_does_not_exist(world: World) -> None:
    with clients(world) as (client, _):
        client.look()
        client.send_in_all_versions(join(UNKNOWN_MEMBER))
        client.send_in_all_versions(join(UNKNOWN_MEMBER, "one"), 5)
        client.send_in_all_versions(sync(UNKNOWN_MEMBER, 1))
        client.send_in_all_versions(heartbeat(UNKNOWN_MEMBER, 1))
        client.send_in_all_versions(leave((UNKNOWN_MEMBER, None)))
        client.send_in_all_versions(leave((UNKNOWN_MEMBER, None), ("", "one"), (UNKNOWN_MEMBER, "one")), 3)
        client.send_in_all_versions(DeleteGroupsRequest([GONE, GONE, ""]))
        client.look()


@pytest.mark.parametrize("version", range(10))
def test_invalid_join_requests(world: World, version: int) -> None:
    with clients(world) as (client, _):
        for fields in (
            {"session_timeout_ms": 5_999},
            {"session_timeout_ms": 1_800_001},
            {"session_timeout_ms": -1},
            {"protocol_type": ""},
            {"protocols": []},
        ):
            client.send(join(**fields), version)
            client.look()
        nameless = join()
        nameless.group_id = ""
        client.send(nameless, version)


@pytest.mark.parametrize("version", range(10))
def test_the_life_of_a_group_of_one(world: World, version: int) -> None:
    with clients(world) as (client, _):
        client.send(join(), version)
        if version >= 4:
            client.look()
            client.send(heartbeat(A, 0))
            client.send(sync(A, 0))
            client.send(join(A), version)
        client.look()
        wrong_in_any_state(client, 1)
        client.send(join(A), version)  # the same again
        client.send(sync(A, 1, (A, b"work"), (UNKNOWN_MEMBER, b"more")))
        client.look()
        wrong_in_any_state(client, 1)
        client.send_in_all_versions(sync(A, 1, (A, b"other")))
        client.send_in_all_versions(heartbeat(A, 1))
        client.send(DeleteGroupsRequest([G]))
        client.send(join(A), version)  # the leader sends another generation
        client.send_in_all_versions(sync(A, 1))
        client.send(sync(A, 2))  # without an assignment for itself
        client.look()
        client.send(join(A, None, "sticky"), version)
        client.send(sync(A, 3, (A, b"x"), protocol_name="sticky"))
        client.send(leave((A, None)))
        client.look()
        wrong_in_any_state(client, 4)
        client.send_in_all_versions(DeleteGroupsRequest([G, GONE]))
        client.look()


def wrong_in_any_state(client: Client, generation: int) -> None:
    """Return requests that are invalid for a member of this generation."""
    for request in (
        sync(A, generation + 1),
        sync(UNKNOWN_MEMBER, generation),
        sync(A, generation, group_id=""),
        sync(A, generation, group_instance_id="one"),
        heartbeat(A, generation - 1),
        heartbeat(UNKNOWN_MEMBER, generation),
        heartbeat(A, generation, group_id=""),
        heartbeat(A, generation, group_instance_id="one"),
        leave((UNKNOWN_MEMBER, None)),
        leave((A, "one")),
        leave(("", None)),
        leave((A, None), group=""),
    ):
        client.send_in_all_versions(request, 3 if isinstance(request, LeaveGroupRequest) else 0)
    for fields in (
        {"protocol_type": None},
        {"protocol_name": None},
        {"protocol_type": "connect"},
        {"protocol_name": "sticky"},
        {"protocol_type": "", "protocol_name": ""},
    ):
        client.send(sync(A, generation, **fields))
    for request in (
        join(UNKNOWN_MEMBER),
        join(A, "one"),
        join(A, None, "nope"),
        join(A, protocol_type="connect"),
    ):
        client.send(request)


def join_second_member(
    a: Client, b: Client, generation: int, request: JoinGroupRequest, version: int
) -> None:
    """Send B's JoinGroup; it completes when A, whose heartbeats report the rebalance, has joined again."""
    spec = a.world.pair.apis[JoinGroupRequest.API_KEY]
    answers = []
    for (side, names), (other_side, _) in zip(a.world.sides(), b.world.sides(), strict=True):
        with ThreadPoolExecutor(1) as pool:
            first = resolve(request, names)
            waiting = pool.submit(other_side.exchange, first, spec.response, version)
            wait_for_rebalance(side, resolve(heartbeat(A, generation), names))
            second = resolve(join(A), names)
            mine, its = side.exchange(second, spec.response, NEWEST_JOIN), waiting.result()
        for sent, answer in ((first, its), (second, mine)):
            assert answer.body is not None, answer
            names.learn(sent, answer.body)
        answers.append((its, mine))
    (kafka_b, kafka_a), (barnabas_b, barnabas_a) = answers
    world = a.world
    names_of_both = (world.kafka_names, world.barnabas_names)
    differences = [
        *compare(spec.name, version, kafka_b, barnabas_b, *names_of_both),
        *compare(spec.name, NEWEST_JOIN, kafka_a, barnabas_a, *names_of_both),
    ]
    assert not differences, "\n".join(map(str, differences))


def wait_for_rebalance(side: Side, request: Message) -> None:
    """Send heartbeats until the response is REBALANCE_IN_PROGRESS."""
    deadline_s = time.monotonic() + REBALANCE_TIMEOUT_S
    while True:
        answer = side.exchange(request, HeartbeatResponse, 4).body
        assert isinstance(answer, HeartbeatResponse)
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
        assert time.monotonic() < deadline_s, f"{side.name} does not rebalance"


def lead_alone(client: Client) -> None:
    """Make A the only member of generation 1."""
    client.send(join())
    client.send(join(A))
    client.send(sync(A, 1, (A, b"all")))


@pytest.mark.parametrize("version", [0, 3])
def test_a_dynamic_member_joins_and_leaves(world: World, version: int) -> None:
    with clients(world) as (a, b):
        lead_alone(a)
        join_second_member(a, b, 1, join(), version)
        a.look()
        a.send(sync(A, 2, (A, b"one"), (B, b"two")))
        b.send(sync(B, 2))
        a.look()
        b.send(join(B), NEWEST_JOIN)  # a follower receives the generation again
        for request in (heartbeat(B, 2), heartbeat(B, 1), sync(B, 1), join(B, "one"), leave((B, "one"))):
            b.send(request)
        b.send(leave((B, None)))
        a.look()
        for request in (heartbeat(A, 2), sync(A, 2), heartbeat(B, 2)):
            a.send(request)
        a.send(join(A))
        a.send(sync(A, 3, (A, b"all")))
        a.look()
        a.send(leave((A, None), (B, None)))
        a.look()


@pytest.mark.parametrize("version", [5, 6, 7, 8, 9])
def test_a_static_member_is_replaced_and_removed(world: World, version: int) -> None:
    with clients(world) as (a, b):
        lead_alone(a)
        join_second_member(a, b, 1, join("", "one"), version)
        a.send(sync(A, 2, (A, b"one"), (B, b"two")))
        b.send(sync(B, 2, group_instance_id="one"))
        b.send(join("", "one"), version)  # it returns with a new member id
        a.look()
        for request in (
            heartbeat(B, 2, group_instance_id="one"),
            heartbeat(B, 2),
            sync(B, 2, group_instance_id="one"),
            join(B, "one"),
            leave((B, "one")),
            heartbeat(C, 2, group_instance_id="one"),
            heartbeat(C, 2),
            sync(C, 2, group_instance_id="one"),
            heartbeat(A, 2),
            join(UNKNOWN_MEMBER, "two"),
            join(A, "two"),
        ):
            b.send(request)
        a.send(leave(("", "two"), ("", "one"), ("", "one"), (UNKNOWN_MEMBER, None)))
        a.look()
        a.send(join(A))
        a.send(sync(A, 3))
        a.look()


@pytest.mark.parametrize("version", [5, 8, 9])
def test_a_static_leader_returns(world: World, version: int) -> None:
    with clients(world) as (a, _):
        a.send(join("", "one"), version)
        a.send(join("", "one"), version)  # before it has sent assignments: all members join again
        a.send(sync(A, 1, (A, b"work"), group_instance_id="one"))
        a.send(sync(B, 2, (B, b"work"), group_instance_id="one"))
        a.send(join("", "one"), version)
        a.send(sync(C, 2, (C, b"other"), group_instance_id="one"))
        a.look()
        a.send(
            join("", "one", "sticky"), version
        )  # the group's protocol changes, and so all members join again
        a.look()


@pytest.mark.parametrize(
    ("firsts", "seconds"),
    [(("range", "sticky"), ("sticky",)), (("range", "sticky"), ("nope", "range")), (("range",), ("range",))],
)
def test_members_vote_for_a_protocol(world: World, firsts: tuple[str, ...], seconds: tuple[str, ...]) -> None:
    with clients(world) as (a, b):
        lead_alone(a)
        a.send(join(A, None, *firsts))
        a.send(sync(A, 2, protocol_name=firsts[0]))
        join_second_member(a, b, 2, join("", None, *seconds), OLD_VERSION)
        a.look()
