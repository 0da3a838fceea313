"""Committed offsets: commits, fetches and deletions of any client and version get the same responses as in Kafka."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from differential.sequences import create, topic
from differential.symbols import Name, Producer, TopicId
from differential.test_groups import GONE, UNKNOWN_MEMBER, A, Client, G, clients, join, leave, sync
from differential.world import World

TX: Any = Name("tx")
FIRST_WITH_MANY_GROUPS, FIRST_WITH_TOPIC_IDS = 8, 10
VISIBLE_TIMEOUT_S = 5.0

Offsets = dict[str, list[tuple[int, int, str | None]]]  #: topic -> (index, offset, text)


def commit(offsets: Offsets, group: Any = G, **fields: Any) -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(
            Name(name),  # type: ignore[arg-type]
            TopicId(name),  # type: ignore[arg-type]
            [
                OffsetCommitRequestPartition(index, offset, offset % 5 - 1, committed_metadata=text)
                for index, offset, text in partitions
            ],
        )
        for name, partitions in offsets.items()
    ]
    return OffsetCommitRequest(group_id=group, topics=topics, **fields)


def fetch(
    indexes: dict[str, list[int]] | None, *groups: Any, stable: bool = False, **fields: Any
) -> OffsetFetchRequest:
    """Build requests for every version: one group before v8, several since."""
    requested = (
        None
        if indexes is None
        else [OffsetFetchRequestTopic(Name(name), each) for name, each in indexes.items()]
    )  # type: ignore[arg-type]
    named = (
        None
        if indexes is None
        else [
            OffsetFetchRequestTopics(Name(name), TopicId(name), each)  # type: ignore[arg-type]
            for name, each in indexes.items()
        ]
    )
    several = [OffsetFetchRequestGroup(group, topics=named, **fields) for group in groups or (G,)]
    return OffsetFetchRequest((groups or (G,))[0], requested, several, stable)


def delete(indexes: dict[str, list[int]], group: Any = G) -> OffsetDeleteRequest:
    topics = [
        OffsetDeleteRequestTopic(Name(name), [OffsetDeleteRequestPartition(index) for index in each])  # type: ignore[arg-type]
        for name, each in indexes.items()
    ]
    return OffsetDeleteRequest(group, topics)


def commit_in_transaction(
    offsets: Offsets, epoch: int = 0, group: Any = G, **fields: Any
) -> TxnOffsetCommitRequest:
    topics = [
        TxnOffsetCommitRequestTopic(
            Name(name),  # type: ignore[arg-type]
            [TxnOffsetCommitRequestPartition(index, offset, 3, text) for index, offset, text in partitions],
        )
        for name, partitions in offsets.items()
    ]
    return TxnOffsetCommitRequest(TX, group, Producer(0), epoch, topics=topics, **fields)  # type: ignore[arg-type]


@pytest.fixture
def client(world: World) -> Iterator[Client]:
    """Return a client of a world with topics `a` and `b` of two partitions."""
    with clients(world) as (one, _):
        request, version = create(topic("a", 2), topic("b", 2))
        one.send(request, version)
        yield one


def look(client: Client) -> None:
    """Send all read requests about offsets."""
    client.send_in_all_versions(fetch({"a": [0, 1, 2, -1], "b": [0], "missing": [0]}, G, GONE))
    client.send_in_all_versions(fetch(None, G, GONE), 2)
    client.send_in_all_versions(fetch({}))
    client.send_in_all_versions(fetch({"a": [0, 1]}, stable=True), 7)


def test_fetches_without_committed_offsets(client: Client) -> None:
    look(client)
    client.send_in_all_versions(commit({"a": [(0, 5, "")]}, generation_id_or_member_epoch=0), 1)
    client.send_in_all_versions(
        commit({"a": [(0, 5, "")]}, generation_id_or_member_epoch=3, member_id=UNKNOWN_MEMBER), 1
    )
    for indexes in ({"a": [0]}, {"missing": [0]}, {"a": [9]}, {}):
        client.send(delete(indexes))
        client.send(delete(indexes, ""))
    client.send_in_all_versions(fetch({"a": [0]}, member_id=UNKNOWN_MEMBER, member_epoch=3), 9)
    look(client)


@pytest.mark.parametrize("version", range(2, 11))
def test_a_consumer_that_only_commits(client: Client, version: int) -> None:
    client.send(commit({"a": [(0, 5, "note"), (1, 6, None)]}), version)
    look(client)
    client.look()
    client.send(commit({"a": [(0, 7, "x" * 4096), (1, 8, "x" * 4097)]}), version)
    client.send(commit({"a": [(0, 7, "ü" * 4096), (1, 8, "🙂" * 2049)]}), version)
    client.send(
        commit({"a": [(1, 9, ""), (2, 1, ""), (-1, 1, "")], "missing": [(0, 1, "")], "b": [(0, -1, "")]}),
        version,
    )
    client.send(commit({"a": [(0, 1, ""), (0, 2, "")]}), version)
    client.send(commit({"missing": [(0, 1, "")]}), version)
    client.send(commit({"a": []}), version)
    client.send(commit({}), version)
    client.send(commit({"a": [(0, 2**62, "")], "b": [(1, -5, "")]}, member_id=UNKNOWN_MEMBER), version)
    client.send(
        commit({"a": [(0, 11, "")]}, member_id=UNKNOWN_MEMBER, generation_id_or_member_epoch=3), version
    )
    client.send(commit({"a": [(0, 12, "")]}, group_instance_id="one" if version >= 7 else None), version)
    client.send(commit({"a": [(0, 13, "")]}, retention_time_ms=60_000), version)
    look(client)
    client.send(delete({"a": [0, 0, 5], "missing": [0]}))
    look(client)
    client.send(DeleteGroupsRequest([G]))
    look(client)
    client.look()


def test_the_empty_group_id(client: Client) -> None:
    client.send_in_all_versions(commit({"a": [(0, 5, "")]}, ""))
    client.send_in_all_versions(fetch({"a": [0]}, ""))
    client.send(delete({"a": [0]}, ""))


def test_topics_by_id(client: Client) -> None:
    client.send(commit({"a": [(0, 5, "")], "b": [(0, 6, "")]}), 10)
    unknown = fetch({"a": [0]})
    assert unknown.groups[0].topics is not None
    for topic_id in (ZERO_UUID, bytes(15) + b"\7"):
        unknown.groups[0].topics[0].topic_id = topic_id
        client.send(unknown, 10)
        wrong = commit({"a": [(0, 7, "")]})
        wrong.topics[0].topic_id = topic_id
        client.send(wrong, 10)
    client.send(DeleteTopicsRequest([DeleteTopicState(Name("a"))], timeout_ms=10_000), 5)  # type: ignore[arg-type]
    wait_until_alike(client, fetch(None))
    request, version = create(topic("a", 2))
    client.send(request, version)
    look(client)
    client.send(commit({"a": [(0, 8, "")]}), 9)
    look(client)


@pytest.mark.parametrize("version", range(2, 11))
def test_members_commit_in_their_generation(client: Client, version: int) -> None:
    offsets: Offsets = {"a": [(0, 5, "")], "b": [(0, 6, "")]}

    def try_all() -> None:
        for generation in (-2, -1, 0, 1, 2):
            for member in ("", A, UNKNOWN_MEMBER):
                identity = {"generation_id_or_member_epoch": generation, "member_id": member}
                client.send(commit(offsets, **identity), version)
                if version >= 7:
                    client.send(commit(offsets, **identity, group_instance_id="one"), version)
        look(client)
        client.send(delete({"a": [0], "b": [0]}))
        client.send_in_all_versions(fetch({"a": [0]}, member_id=A, member_epoch=1), 9)

    client.send(join())
    client.send(join(A))
    try_all()  # before the leader has sent assignments
    client.send(sync(A, 1, (A, b"all")))
    try_all()
    client.send(leave((A, None)))
    try_all()


def test_groups_of_other_protocols_keep_their_offsets(client: Client) -> None:
    client.send(join(protocol_type="connect"))
    client.send(join(A, protocol_type="connect"))
    client.send(sync(A, 1, (A, b"all"), protocol_type="connect"))
    client.send(commit({"a": [(0, 5, "")]}, generation_id_or_member_epoch=1, member_id=A))
    client.send(delete({"a": [0]}))
    client.send(leave((A, None)))
    client.send(delete({"a": [0]}))
    look(client)


def wait_until_alike(client: Client, request: OffsetFetchRequest) -> None:
    """Wait until Kafka shows the ends of transactions and the deletion of topics."""
    deadline_s = time.monotonic() + VISIBLE_TIMEOUT_S
    while client.world.exchange(request, 9) and time.monotonic() < deadline_s:
        time.sleep(0.01)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_of_transactions(client: Client, version: int, committed: bool) -> None:
    client.send(commit({"a": [(0, 1, "before")]}), 9)
    client.send(InitProducerIdRequest(TX, 60_000), 5)
    if version < 5:
        client.send(commit_in_transaction({"a": [(0, 5, "")]}), version)  # before AddOffsetsToTxn
        client.send(AddOffsetsToTxnRequest(TX, Producer(0), 0, G), 3)  # type: ignore[arg-type]
    client.send(
        commit_in_transaction({"a": [(0, 5, "note"), (1, 6, None)], "missing": [(0, 7, "")]}), version
    )
    client.send(commit_in_transaction({"a": [(0, 6, "x" * 4097), (9, 6, "")], "b": [(0, 8, "")]}), version)
    client.send(commit_in_transaction({"missing": [(0, 7, "")]}), version)
    client.send(commit_in_transaction({"a": [(0, 9, "")]}, -1), version)
    client.send(commit_in_transaction({"a": [(0, 9, "")]}, group=""), version)
    if version >= 3:
        client.send(
            commit_in_transaction({"a": [(0, 9, "")]}, generation_id=4, member_id=UNKNOWN_MEMBER), version
        )
        client.send(commit_in_transaction({"a": [(0, 10, "")]}, member_id=UNKNOWN_MEMBER), version)
    look(client)
    client.send(commit({"b": [(0, 11, "later")]}), 9)
    client.send(EndTxnRequest(TX, Producer(0), 0, committed), 3 if version < 5 else 5)  # type: ignore[arg-type]
    wait_until_alike(client, fetch({"a": [0, 1], "b": [0]}, stable=True))
    look(client)


def test_deletions_while_a_transaction_is_open(client: Client) -> None:
    client.send(InitProducerIdRequest(TX, 60_000), 5)
    client.send(AddOffsetsToTxnRequest(TX, Producer(0), 0, G), 3)  # type: ignore[arg-type]
    client.send(commit_in_transaction({"a": [(0, 5, ""), (1, 6, "")]}), 3)
    client.send(delete({"a": [0]}))
    look(client)
    client.send(EndTxnRequest(TX, Producer(0), 0, True), 3)  # type: ignore[arg-type]
    wait_until_alike(client, fetch({"a": [0, 1]}, stable=True))
    look(client)
