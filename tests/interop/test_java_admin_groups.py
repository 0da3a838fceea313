"""Requests of the Java Admin client to coordinators: groups, their offsets and members, and transactions."""

from collections.abc import Iterator

import pytest
from interop.brokers import Broker
from interop.clients import Client, ClientError, Clients
from interop.topics import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture
def java(every_client: Clients) -> Client:
    return every_client["java"]


@pytest.fixture
def group(names: Iterator[str]) -> str:
    return next(names)


@pytest.fixture
def transactional_id(names: Iterator[str]) -> str:
    return next(names)


def error_of(java: Client, operation: str, **arguments: object) -> str:
    with pytest.raises(ClientError) as caught:
        java.do(operation, **arguments)
    return caught.value.name


@pytest.mark.parametrize(
    ("protocol", "kind", "assignor"), [("classic", "Classic", "range"), ("consumer", "Consumer", "uniform")]
)
def test_an_active_group_is_described_and_deleted_when_it_is_empty(
    java: Client, broker: Broker, topic: str, group: str, protocol: str, kind: str, assignor: str
) -> None:
    java.do("join_group", topic=topic, group=group, protocol=protocol)
    eventually(lambda: java.do("membership")["partitions"] == [0])
    eventually(lambda: java.do("groups")[group] == [kind, "Stable"])
    described = java.do("consumer_group", group=group)
    assert described.pop("coordinator") in broker.nodes
    assert described == {"type": kind, "state": "Stable", "assignor": assignor, "partitions": [0]}
    assert error_of(java, "delete_group", group=group) == "GroupNotEmptyException"
    java.do("leave_group")
    assert java.do("groups")[group] == [kind, "Empty"]
    java.do("delete_group", group=group)
    assert group not in java.do("groups")
    assert error_of(java, "consumer_group", group=group) == "GroupIdNotFoundException"


def test_a_classic_group_is_described_and_its_members_removed(java: Client, topic: str, group: str) -> None:
    java.do("join_group", topic=topic, group=group, protocol="classic")
    eventually(lambda: java.do("membership")["partitions"] == [0])
    described = java.do("classic_group", group=group)
    assert (described["state"], described["protocol"]) == ("Stable", "consumer")
    assert described["partitions"] == [0]
    java.do("remove_members", group=group)
    eventually(lambda: java.do("classic_group", group=group)["partitions"] == [0])  # it has joined again
    java.do("leave_group")


def test_offsets_of_a_group_are_committed_fetched_and_deleted(java: Client, topic: str, group: str) -> None:
    tp = {"group": group, "topic": topic, "partition": 0}
    java.do("commit", before=0, **tp)
    assert java.do("committed", group=group) == {f"{topic}-0": 0}
    java.do("forget", **tp)
    assert java.do("committed", group=group) == {}


def test_a_transaction_is_described_and_its_producer_fenced(
    java: Client, broker: Broker, topic: str, transactional_id: str
) -> None:
    mine = {"transactional_id": transactional_id}
    java.do("begin_transaction", topic=topic, partition=0, value="open", **mine)
    assert java.do("transactions")[transactional_id] == "Ongoing"
    described = java.do("transaction", **mine)
    assert described.pop("coordinator") in broker.nodes
    assert described == {"state": "Ongoing", "timeout": 60_000, "partitions": [f"{topic}-0"]}
    java.do("fence", **mine)
    assert java.do("transactions")[transactional_id] == "Empty"
    assert error_of(java, "end_transaction", **mine) == "ProducerFencedException"


def test_a_transaction_is_terminated(java: Client, topic: str, transactional_id: str) -> None:
    mine = {"transactional_id": transactional_id}
    java.do("begin_transaction", topic=topic, partition=0, value="open", **mine)
    java.do("terminate", **mine)
    assert java.do("transactions")[transactional_id] == "Empty"
    assert error_of(java, "end_transaction", **mine) == "ProducerFencedException"


def test_a_transaction_is_aborted_in_one_partition(java: Client, topic: str, transactional_id: str) -> None:
    java.do("begin_transaction", topic=topic, partition=0, value="hangs", transactional_id=transactional_id)
    assert [java.do("abort", topic=topic, partition=0) for _ in range(2)] == [1, 0]
