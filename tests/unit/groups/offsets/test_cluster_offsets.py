"""Offsets of deleted topics are read from, and restored at, the coordinators of all brokers."""

import itertools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.topic_names import GROUP_TOPIC
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import ConnectionLost
from barnabas.coordinator.partition_of import partition_of
from barnabas.groups.offsets import cluster_offsets
from barnabas.groups.offsets.cluster_offsets import ClusterOffsets, to_message
from barnabas.groups.offsets.trash import EncodedOffset
from barnabas.metadata.trash import TRASHED_TOPICS, TrashRecord
from barnabas.wire.barnabas_messages.describe_topic_offsets import (
    DescribeTopicOffsetsResponse,
    OffsetsOfTopic,
)
from barnabas.wire.barnabas_messages.restore_topic_offsets import RestoredGroup, RestoreTopicOffsetsResponse
from barnabas.wire.coordinator_records.committed_offset import (
    CommittedOffset,
    encode_partition,
    encode_value,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import cluster, manually_assigned
from support.loop import on_loop

IMAGE = cluster(2, manually_assigned(GROUP_TOPIC, [1], [2]), manually_assigned("t", [1]))
TOPIC = IMAGE.topics["t"]
names = [f"g{number}" for number in range(20)]
HERE = next(each for each in names if partition_of(each, 2) == 0)
THERE = next(each for each in names if partition_of(each, 2) == 1)
OFFSET = CommittedOffset(5, 2, "note", 1_000, topic_id=TOPIC.topic_id)
LOST = ConnectionLost(BrokerAddress("h", 1), "broker 2 is down")


class Groups:
    """The groups of this broker: each has one offset, and restores what it is given."""

    def __init__(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.error = error
        self.offset = OFFSET
        self.offsets_count = 1
        self.restored: list[tuple[str, int]] = []  #: group and number of offsets of each write

    async def query_each(
        self, run_query: object, checkpoint: object, timeout_s: float
    ) -> dict[int, list[EncodedOffset] | KafkaError]:
        assert timeout_s < cluster_offsets.REQUEST_TIMEOUT_S
        offset = EncodedOffset(HERE, encode_partition("t", 0), encode_value(self.offset))
        return {0: KafkaError(self.error) if self.error else [offset] * self.offsets_count}

    async def handle_request(self, group_id: str, event: Callable[[Any, object, object], None]) -> int:
        if self.error:
            raise KafkaError(self.error)
        event(SimpleNamespace(offsets=self), None, None)
        return self.restored[-1][1]

    def restore(
        self,
        result: object,
        pending: object,
        group_id: str,
        topic: str,
        offsets: Mapping[int, CommittedOffset],
    ) -> None:
        self.restored.append((group_id, len(offsets)))


class Client:
    """Broker 2, which gives its answers in turn, the last one for ever."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.requests: list[Any] = []

    async def send(self, broker_id: int, request: Any) -> Any:
        assert broker_id == 2
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def offsets_of(client: Client, groups: Groups | None = None) -> ClusterOffsets:
    return ClusterOffsets(1, lambda: IMAGE, groups or Groups(), client)


async def no_checkpoint() -> None:
    pass


def described(*offsets: Any) -> DescribeTopicOffsetsResponse:
    return DescribeTopicOffsetsResponse(topics=[OffsetsOfTopic("t", list(offsets))])


def trashed(*group_ids: str) -> TrashRecord:
    offsets: Mapping[str, Mapping[int, CommittedOffset]] = {group_id: {0: OFFSET} for group_id in group_ids}
    return TrashRecord(TOPIC, {}, {}, 0, "User:ANONYMOUS", offsets)


def restored(error: ErrorCode) -> RestoreTopicOffsetsResponse:
    return RestoreTopicOffsetsResponse(groups=[RestoredGroup(THERE, error, 0 if error else 1)])


@pytest.fixture(autouse=True)
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_offsets, "RETRY_DELAY_S", 0)


@on_loop
async def test_offsets_of_all_coordinators_are_kept() -> None:
    client = Client(described(to_message(THERE, 0, OFFSET)))
    found = await offsets_of(client).of_topics({"t"}, no_checkpoint)
    assert found == {"t": {HERE: {0: OFFSET}, THERE: {0: OFFSET}}}
    assert [request.topics for request in client.requests] == [["t"]]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (LOST, "broker 2 is down"),
        (TimeoutError(), "no answer within 5 seconds"),
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION), "UNSUPPORTED_VERSION"),
        (DescribeTopicOffsetsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), "COORDINATOR_LOAD"),
    ],
)
@on_loop
async def test_offsets_of_a_broker_that_does_not_answer_are_left_out(
    answer: object, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    offsets = offsets_of(Client(answer))
    assert await offsets.of_topics({"t"}, no_checkpoint) == {"t": {HERE: {0: OFFSET}}}
    [line] = capsys.readouterr().err.splitlines()
    assert "broker_id=2" in line
    assert why in line
    assert offsets.statistics() == {"unanswered_count": 1}


@on_loop
async def test_if_there_are_too_many_offsets_none_is_kept_and_other_clients_are_served_meanwhile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    groups, checkpoints = Groups(), itertools.count()
    groups.offsets_count = 3 * cluster_offsets.OFFSETS_MAX

    async def checkpoint() -> None:
        next(checkpoints)

    assert await offsets_of(Client(described()), groups).of_topics({"t"}, checkpoint) == {}
    assert "too many [barnabas.groups] count_max=20000" in capsys.readouterr().err
    assert next(checkpoints) == 400  # decoded, and measured


@on_loop
async def test_offsets_with_long_metadata_are_left_out_for_the_groups_with_the_most_bytes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = OFFSET._replace(metadata="\0" * 4_096)  # six bytes each in JSON
    others = [to_message(THERE, index, long) for index in range(200)]
    short = [to_message("billing", index, OFFSET) for index in range(5_000)]
    client = Client(described(*others, *short))
    found = await offsets_of(client, Groups()).of_topics({"t"}, no_checkpoint)
    assert {group_id: len(partitions) for group_id, partitions in found["t"].items()} == {
        HERE: 1,
        "billing": 5_000,
    }
    row = TRASHED_TOPICS.put("t", TrashRecord(TOPIC, {}, {}, 1, "User:alice", found["t"]))
    assert len(row.value or b"") < cluster_offsets.OFFSETS_BYTES_MAX
    [line] = capsys.readouterr().err.splitlines()
    assert f"groups_count=1 largest_group={THERE} topic=t" in line


@on_loop
async def test_offsets_of_20000_partitions_without_metadata_fit() -> None:
    plain = CommittedOffset(1_000_000, 5, "", 1_700_000_000_000, topic_id=TOPIC.topic_id)
    client = Client(described(*(to_message(THERE, index, plain) for index in range(19_999))))
    found = await offsets_of(client, Groups()).of_topics({"t"}, no_checkpoint)
    assert len(found["t"][THERE]) == 19_999


@on_loop
async def test_a_broker_returns_no_more_of_its_own_offsets_than_can_be_kept() -> None:
    groups = Groups()
    groups.offset = OFFSET._replace(metadata="x" * 4_096)
    groups.offsets_count = 20_000
    assert await offsets_of(Client(), groups).here({"t"}, no_checkpoint) == ([], None)


@on_loop
async def test_many_offsets_of_a_group_are_restored_with_several_writes() -> None:
    groups = Groups()
    of_group = {HERE: dict.fromkeys(range(1_200), OFFSET)}
    restored = await offsets_of(Client(), groups).restore_here("t", TOPIC.topic_id, of_group)
    assert restored == [RestoredGroup(HERE, ErrorCode.NONE, 1_200)]
    assert groups.restored == [(HERE, 500), (HERE, 500), (HERE, 200)]


@on_loop
async def test_own_offsets_that_are_being_loaded_are_left_out() -> None:
    client = Client(described(to_message(THERE, 0, OFFSET)))
    offsets = offsets_of(client, Groups(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    assert await offsets.of_topics({"t"}, no_checkpoint) == {"t": {THERE: {0: OFFSET}}}


@on_loop
async def test_each_offset_is_restored_by_its_coordinator() -> None:
    client, groups = Client(restored(ErrorCode.NONE)), Groups()
    assert await offsets_of(client, groups).restore(trashed(HERE, THERE)) == 2
    assert groups.restored == [(HERE, 1)]
    [request] = client.requests
    assert (request.name, request.topic_id) == ("t", TOPIC.topic_id)
    assert request.offsets == [to_message(THERE, 0, OFFSET)]


@pytest.mark.parametrize(
    "first", [restored(ErrorCode.UNKNOWN_TOPIC_ID), restored(ErrorCode.NOT_COORDINATOR), LOST, TimeoutError()]
)
@on_loop
async def test_restoring_is_repeated_until_the_coordinator_is_ready(first: object) -> None:
    client = Client(first, restored(ErrorCode.NONE))
    assert await offsets_of(client).restore(trashed(THERE)) == 1
    assert len(client.requests) == 2


@pytest.mark.parametrize(
    ("answer", "requests_count"),
    [
        (LOST, cluster_offsets.ATTEMPTS_COUNT),
        (restored(ErrorCode.NOT_ENOUGH_REPLICAS), 1),
        (RestoreTopicOffsetsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), 1),
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION), 1),
    ],
)
@on_loop
async def test_a_group_whose_offsets_cannot_be_restored_does_not_prevent_others(
    answer: object, requests_count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Client(answer)
    assert await offsets_of(client).restore(trashed(HERE, THERE)) == 1
    assert len(client.requests) == requests_count
    [line] = capsys.readouterr().err.splitlines()
    assert f"group={THERE}" in line


@on_loop
async def test_offsets_are_refused_until_the_topic_is_known_to_exist_again() -> None:
    offsets = offsets_of(Client(LOST))
    of_group = {HERE: {0: OFFSET}}
    assert await offsets.restore_here("t", TOPIC.topic_id, of_group) == [RestoredGroup(HERE, 0, 1)]
    assert await offsets.restore_here("t", b"another topic id", of_group) == [
        RestoredGroup(HERE, ErrorCode.UNKNOWN_TOPIC_ID)
    ]
